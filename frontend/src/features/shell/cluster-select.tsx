/** The choice among several clusters; most readers have one, and never read this. */
import { t } from "@lingui/core/macro";
import { Select } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";
import { ALL_CLUSTERS, isSeveral } from "@/lib/url/clusters";

/** Each cluster, all together, and the several that are on screen. */
function choices(shown: string, names: string[]) {
  const all = { value: ALL_CLUSTERS, label: t`All clusters` };
  const some = isSeveral(shown) && shown !== ALL_CLUSTERS ? [{ value: shown, label: shown }] : [];
  return [all, ...some, ...names.map((name) => ({ value: name, label: name }))];
}

export function ClusterSelect({ clusters }: { clusters: ClusterSummary[] }) {
  const cluster = useCluster();
  const navigate = useNavigate();
  return (
    <Select
      aria-label={t`Cluster`}
      size="xs"
      w="clamp(6rem, 25vw, 8.75rem)"
      allowDeselect={false}
      value={cluster}
      data={choices(
        cluster,
        clusters.map(({ name }) => name),
      )}
      onChange={(name) => {
        if (name !== null) void navigate({ to: "/", search: { cluster: name } });
      }}
    />
  );
}

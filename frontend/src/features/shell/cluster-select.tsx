/** The choice among several clusters; most readers have one, and never read this. */
import { t } from "@lingui/core/macro";
import { Select } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";

export function ClusterSelect({ clusters }: { clusters: ClusterSummary[] }) {
  const cluster = useCluster();
  const navigate = useNavigate();
  return (
    <Select
      aria-label={t`Cluster`}
      size="xs"
      w={140}
      allowDeselect={false}
      value={cluster}
      data={clusters.map(({ name }) => name)}
      onChange={(name) => {
        if (name !== null) void navigate({ to: "/", search: { cluster: name } });
      }}
    />
  );
}

/** Chooses the cluster on screen; it stands in the URL. */
import { t } from "@lingui/core/macro";
import { Badge, Select } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";

export function ClusterSwitcher({ clusters }: { clusters: ClusterSummary[] }) {
  const cluster = useCluster();
  const navigate = useNavigate();
  if (clusters.length < 2) {
    return (
      <Badge variant="default" tt="none" radius="sm" visibleFrom="xs">
        {cluster}
      </Badge>
    );
  }
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

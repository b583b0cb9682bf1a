/** The mode of the cluster on screen; on every page, so that a cluster that is only observed is not mistaken. */
import { t } from "@lingui/core/macro";
import { Badge, Tooltip } from "@mantine/core";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";
import { clusterModes } from "@/lib/words/cluster-mode";

export function ModeBadge({ clusters }: { clusters: ClusterSummary[] }) {
  const cluster = useCluster();
  const found = clusters.find(({ name }) => name === cluster);
  if (found === undefined) return null;
  const { label, color, meaning } = clusterModes()[found.mode];
  return (
    <Tooltip label={meaning} multiline maw={320}>
      <Badge
        variant="light"
        color={color}
        tt="none"
        radius="sm"
        miw="max-content"
        aria-label={t`Mode: ${label}. ${meaning}`}
      >
        {label}
      </Badge>
    </Tooltip>
  );
}

/** Who decides in the cluster on screen; on every page, so that nobody mistakes a cluster that is only watched. */
import { t } from "@lingui/core/macro";
import { Badge, Tooltip } from "@mantine/core";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";

const modes = (): Record<ClusterSummary["mode"], { label: string; color: string; meaning: string }> => ({
  observe: {
    label: t`Observe`,
    color: "yellow",
    meaning: t`Another scheduler decides here. Everything is shown; nothing is written to the cluster.`,
  },
  shadow: {
    label: t`Shadow`,
    color: "grape",
    meaning: t`Another scheduler decides here. Ours decides beside it, and nothing is written to the cluster.`,
  },
  schedule: { label: t`Schedule`, color: "blue", meaning: t`kueueweb decides in this cluster.` },
});

export function ModeBadge({ clusters }: { clusters: ClusterSummary[] }) {
  const cluster = useCluster();
  const found = clusters.find(({ name }) => name === cluster);
  if (found === undefined) return null;
  const { label, color, meaning } = modes()[found.mode];
  return (
    <Tooltip label={meaning} multiline maw={320}>
      <Badge variant="light" color={color} tt="none" radius="sm" aria-label={t`Mode: ${label}. ${meaning}`}>
        {label}
      </Badge>
    </Tooltip>
  );
}

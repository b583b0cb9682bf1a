/** The clusters on screen: each chip takes one in or leaves it out. */
import { t } from "@lingui/core/macro";
import { Chip, Group } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";
import { chosenClusters, writeClusters } from "@/lib/url/clusters";

export function ClusterChips({ clusters }: { clusters: ClusterSummary[] }) {
  const cluster = useCluster();
  const navigate = useNavigate();
  const known = clusters.map(({ name }) => name);
  return (
    <Chip.Group
      multiple
      value={chosenClusters(cluster, known)}
      onChange={(chosen) =>
        void navigate({
          to: ".",
          search: (search) => ({ ...search, cluster: writeClusters(chosen, known) }),
        })
      }
    >
      <Group gap={6} mb="sm" role="group" aria-label={t`Clusters`}>
        {known.map((name) => (
          <Chip key={name} value={name} size="xs" variant="outline">
            {name}
          </Chip>
        ))}
      </Group>
    </Chip.Group>
  );
}

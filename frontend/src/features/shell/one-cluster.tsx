/** Stands for a page that shows one cluster while several are chosen: the same page of each of them. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";
import { ClusterLinks } from "@/components/clusters/cluster-links";
import { EmptyState } from "@/components/empty-state";
import { chosenClusters } from "@/lib/url/clusters";

export function OneCluster({ clusters }: { clusters: ClusterSummary[] }) {
  const shown = chosenClusters(
    useCluster(),
    clusters.map(({ name }) => name),
  );
  return (
    <EmptyState icon="nodes" title={t`This page shows one cluster`} action={<ClusterLinks names={shown} />}>
      <Trans>Choose the cluster that you want to see.</Trans>
    </EmptyState>
  );
}

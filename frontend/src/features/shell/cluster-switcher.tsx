/** Chooses the cluster on screen; it stands in the URL. */
import { t } from "@lingui/core/macro";
import { Badge, Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useCluster } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";
import { ALL_CLUSTERS } from "@/lib/url/clusters";

const ClusterSelect = lazy(async () => ({ default: (await import("./cluster-select")).ClusterSelect }));

export function ClusterSwitcher({ clusters }: { clusters: ClusterSummary[] }) {
  const cluster = useCluster();
  if (clusters.length < 2) {
    return (
      <Badge variant="default" tt="none" radius="sm" visibleFrom="xs">
        {cluster === ALL_CLUSTERS ? t`All clusters` : cluster}
      </Badge>
    );
  }
  return (
    <Suspense fallback={<Skeleton w={140} h={30} />}>
      <ClusterSelect clusters={clusters} />
    </Suspense>
  );
}

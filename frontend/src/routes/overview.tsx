import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useIsSeveral } from "@/api/cluster";
import { ClusterHistory } from "@/features/history/cluster-history";
import { OverviewPage } from "@/features/overview/overview-page";

const ClustersPage = lazy(async () => ({
  default: (await import("@/features/clusters/clusters-page")).ClustersPage,
}));

/** The overview of one cluster, or a line for each of several. */
export function OverviewRoute() {
  if (!useIsSeveral()) return <OverviewPage history={<ClusterHistory />} />;
  return (
    <Suspense fallback={<Skeleton height={320} />}>
      <ClustersPage />
    </Suspense>
  );
}

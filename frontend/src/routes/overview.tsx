import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useIsSeveral } from "@/api/cluster";
import { ClusterHistory } from "@/features/history/cluster-history";
import { OverviewPage } from "@/features/overview/overview-page";

const ClustersPage = lazy(async () => ({
  default: (await import("@/features/clusters/clusters-page")).ClustersPage,
}));

/** Of one cluster its overview, of several a line for each. */
export function OverviewRoute() {
  if (!useIsSeveral()) return <OverviewPage history={<ClusterHistory />} />;
  return (
    <Suspense fallback={<Skeleton height={320} />}>
      <ClustersPage />
    </Suspense>
  );
}

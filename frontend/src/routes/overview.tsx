import { useIsSeveral } from "@/api/cluster";
import { ClustersPage } from "@/features/clusters/clusters-page";
import { ClusterHistory } from "@/features/history/cluster-history";
import { OverviewPage } from "@/features/overview/overview-page";

/** Of one cluster its overview, of several a line for each. */
export function OverviewRoute() {
  return useIsSeveral() ? <ClustersPage /> : <OverviewPage history={<ClusterHistory />} />;
}

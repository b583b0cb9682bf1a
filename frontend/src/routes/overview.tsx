import { ClusterHistory } from "@/features/history/cluster-history";
import { OverviewPage } from "@/features/overview/overview-page";

export function OverviewRoute() {
  return <OverviewPage history={<ClusterHistory />} />;
}

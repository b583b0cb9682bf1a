import { ClusterPage } from "@/features/cluster/cluster-page";

export function ClusterRoute() {
  return <ClusterPage />;
}

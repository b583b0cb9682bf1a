import { getRouteApi } from "@tanstack/react-router";
import { ClusterQueuePage } from "@/features/queues/cluster-queue-page";

const route = getRouteApi("/app/queues/$name");

export function ClusterQueueRoute() {
  const { name } = route.useParams();
  return <ClusterQueuePage key={name} name={name} />;
}

import { getRouteApi } from "@tanstack/react-router";
import { QueueHistory } from "@/features/history/queue-history";
import { ClusterQueuePage } from "@/features/queues/cluster-queue-page";

const route = getRouteApi("/app/queues/$name");

export function ClusterQueueRoute() {
  const { name } = route.useParams();
  return (
    <ClusterQueuePage key={name} name={name} history={<QueueHistory scope="cluster_queue" name={name} />} />
  );
}

import { getRouteApi } from "@tanstack/react-router";
import { QueueHistory } from "@/features/history/queue-history";
import { LocalQueuePage } from "@/features/queues/local-queue-page";
import { WorkloadsOfQueue } from "@/features/workloads/list/workloads-of-queue";

const route = getRouteApi("/app/local-queues/$namespace/$name");

export function LocalQueueRoute() {
  const { namespace, name } = route.useParams();
  const key = `${namespace}/${name}`;
  return (
    <LocalQueuePage
      key={key}
      namespace={namespace}
      name={name}
      workloads={<WorkloadsOfQueue namespace={namespace} queue={name} />}
      history={<QueueHistory scope="local_queue" name={key} />}
    />
  );
}

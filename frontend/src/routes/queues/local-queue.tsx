import { getRouteApi } from "@tanstack/react-router";
import { QueueHistory } from "@/features/history/queue-history";
import { ObjectButtons } from "@/features/objects/object-buttons";
import { LocalQueuePage } from "@/features/queues/local-queue-page";
import { WorkloadsOfQueue } from "@/features/workloads/queue/workloads-of-queue";

const route = getRouteApi("/app/local-queues/$namespace/$name");

export function LocalQueueRoute() {
  const { namespace, name } = route.useParams();
  const navigate = route.useNavigate();
  const key = `${namespace}/${name}`;
  return (
    <LocalQueuePage
      key={key}
      namespace={namespace}
      name={name}
      workloads={<WorkloadsOfQueue namespace={namespace} queue={name} />}
      actions={
        <ObjectButtons
          reference={{ kind: "LocalQueue", namespace, name }}
          onDeleted={() => void navigate({ to: "/queues" })}
        />
      }
      history={<QueueHistory scope="local_queue" name={key} />}
    />
  );
}

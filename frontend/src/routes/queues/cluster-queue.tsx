import { getRouteApi } from "@tanstack/react-router";
import { QueueHistory } from "@/features/history/queue-history";
import { EditQuotaButton, NewObjectButton, ObjectButtons } from "@/features/objects/object-buttons";
import { ClusterQueuePage } from "@/features/queues/cluster-queue-page";
import { AdmittedInQueue, PendingInQueue } from "@/features/workloads/queue/in-cluster-queue";

const route = getRouteApi("/app/queues/$name");

export function ClusterQueueRoute() {
  const { name } = route.useParams();
  const navigate = route.useNavigate();
  return (
    <ClusterQueuePage
      key={name}
      name={name}
      workloads={
        <>
          <PendingInQueue queue={name} />
          <AdmittedInQueue queue={name} />
        </>
      }
      history={<QueueHistory scope="cluster_queue" name={name} />}
      editQuota={(flavor, resource) => <EditQuotaButton queue={name} quota={{ flavor, resource }} />}
      actions={
        <>
          <NewObjectButton kinds={["LocalQueue"]} beginning={{ clusterQueue: name }} />
          <ObjectButtons
            reference={{ kind: "ClusterQueue", name }}
            onDeleted={() => void navigate({ to: "/queues" })}
          />
        </>
      }
    />
  );
}

import { ClusterPage } from "@/features/cluster/cluster-page";
import { NewObjectButton, ObjectButtons } from "@/features/objects/object-buttons";

const stay = () => undefined;

export function ClusterRoute() {
  return (
    <ClusterPage
      edit={(reference, isThere) =>
        isThere ? (
          <ObjectButtons reference={reference} onDeleted={stay} />
        ) : (
          <NewObjectButton kinds={[reference.kind]} />
        )
      }
    />
  );
}

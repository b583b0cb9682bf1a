import { getRouteApi } from "@tanstack/react-router";
import { WorkloadPage } from "@/features/workloads/page/workload-page";

const route = getRouteApi("/app/workloads/$namespace/$name");

export function WorkloadRoute() {
  const { namespace, name } = route.useParams();
  return <WorkloadPage key={`${namespace}/${name}`} namespace={namespace} name={name} />;
}

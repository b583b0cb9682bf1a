import { getRouteApi } from "@tanstack/react-router";
import { CandidateNodes } from "@/features/gpus/candidate-nodes";
import { WorkloadPage } from "@/features/workloads/page/workload-page";

const route = getRouteApi("/app/workloads/$namespace/$name");

export function WorkloadRoute() {
  const { namespace, name } = route.useParams();
  return (
    <WorkloadPage
      key={`${namespace}/${name}`}
      namespace={namespace}
      name={name}
      candidates={(flavors) => <CandidateNodes flavors={flavors} />}
    />
  );
}

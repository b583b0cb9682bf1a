import { getRouteApi } from "@tanstack/react-router";
import { FlowPage } from "@/features/flows/flow-page";

const route = getRouteApi("/app/flows/$namespace/$name");

export function FlowRoute() {
  const { namespace, name } = route.useParams();
  return <FlowPage key={`${namespace}/${name}`} namespace={namespace} name={name} />;
}

import { getRouteApi } from "@tanstack/react-router";
import { TopologyPage } from "@/features/flavors/topology-page";

const route = getRouteApi("/app/topologies/$name");

export function TopologyRoute() {
  const { name } = route.useParams();
  return <TopologyPage key={name} name={name} />;
}

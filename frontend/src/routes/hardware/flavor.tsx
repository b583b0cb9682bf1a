import { getRouteApi } from "@tanstack/react-router";
import { FlavorPage } from "@/features/flavors/flavor-page";
import { NodesOfFlavor } from "@/features/nodes/nodes-of-flavor";
import { FlavorQuotas } from "@/features/queues/flavor-quotas";

const route = getRouteApi("/app/flavors/$name");

export function FlavorRoute() {
  const { name } = route.useParams();
  return (
    <FlavorPage
      key={name}
      name={name}
      quotas={<FlavorQuotas flavor={name} />}
      nodes={<NodesOfFlavor flavor={name} />}
    />
  );
}

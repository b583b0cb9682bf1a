import { getRouteApi } from "@tanstack/react-router";
import { FlavorPage } from "@/features/flavors/flavor-page";
import { NodesOfFlavor } from "@/features/nodes/nodes-of-flavor";
import { ObjectButtons } from "@/features/objects/object-buttons";
import { FlavorQuotas } from "@/features/queues/flavor-quotas";

const route = getRouteApi("/app/flavors/$name");

export function FlavorRoute() {
  const { name } = route.useParams();
  const navigate = route.useNavigate();
  return (
    <FlavorPage
      key={name}
      name={name}
      actions={
        <ObjectButtons
          reference={{ kind: "ResourceFlavor", name }}
          onDeleted={() => void navigate({ to: "/flavors" })}
        />
      }
      quotas={<FlavorQuotas flavor={name} />}
      nodes={<NodesOfFlavor flavor={name} />}
    />
  );
}

import { getRouteApi } from "@tanstack/react-router";
import { CordonButtons } from "@/features/gpus/cordon";
import { DevicesOfNode } from "@/features/gpus/devices-of-node";
import { NodePage } from "@/features/nodes/node-page";

const route = getRouteApi("/app/nodes/$name");

export function NodeRoute() {
  const { name } = route.useParams();
  return (
    <NodePage
      key={name}
      name={name}
      actions={({ cordoned, draining }) => (
        <CordonButtons
          target={{ node: name }}
          name={name}
          state={draining ? "draining" : cordoned ? "cordoned" : undefined}
        />
      )}
      devices={() => <DevicesOfNode node={name} />}
    />
  );
}

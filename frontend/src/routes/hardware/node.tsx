import { getRouteApi } from "@tanstack/react-router";
import { CordonButtons } from "@/features/gpus/cordon";
import { DevicesOfNode } from "@/features/gpus/devices-of-node";
import { NodePage } from "@/features/nodes/node-page";
import { cordonState } from "@/lib/words/node-state";

const route = getRouteApi("/app/nodes/$name");

export function NodeRoute() {
  const { name } = route.useParams();
  return (
    <NodePage
      key={name}
      name={name}
      actions={(node) => <CordonButtons target={{ node: name }} name={name} state={cordonState(node)} />}
      devices={() => <DevicesOfNode node={name} />}
    />
  );
}

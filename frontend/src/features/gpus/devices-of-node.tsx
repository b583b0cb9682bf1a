/** The devices of one node and who holds them, on the node's page. */
import { t } from "@lingui/core/macro";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { useLive } from "@/api/cluster";
import { Panel } from "@/components/panel";
import { NodeDevices } from "./node-devices";
import { groupByNode } from "./summary";

export function DevicesOfNode({ node }: { node: string }) {
  const navigate = useNavigate();
  const devices = useLive((live) => live.data?.devices);
  const [group] = useMemo(
    () =>
      groupByNode(
        Object.entries(devices ?? {})
          .filter(([, device]) => device.node === node)
          .map(([uuid, device]) => ({ uuid, device })),
      ),
    [devices, node],
  );
  if (group === undefined) return null;
  return (
    <Panel title={t`Devices and their holders`} data-live>
      <NodeDevices
        group={group}
        fault={undefined}
        compact={false}
        bare
        highlight={undefined}
        onOpen={(device) => void navigate({ to: "/gpus", search: { node, device } })}
      />
    </Panel>
  );
}

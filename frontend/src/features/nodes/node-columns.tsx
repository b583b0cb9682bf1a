/** The columns of the list of nodes. */
import { t } from "@lingui/core/macro";
import { Group, Text } from "@mantine/core";
import { BadgeDot } from "@/components/badge-dot";
import { AmountMeter } from "@/components/figures/amount-meter";
import { FlavorLink, NodeLink } from "@/components/object-links";
import { ageColumn } from "@/components/table/columns";
import type { ColumnLook, DataColumn } from "@/components/table/data-table";
import { type NodeState, nodeStateLooks } from "@/lib/words/node-state";
import type { Amount, NodeRow } from "./summary";

export const DEVICE_MEMORY = "nvidia.com/gpumem";

export function NodeStateBadge({ state }: { state: NodeState }) {
  const { label, color, meaning } = nodeStateLooks()[state];
  return <BadgeDot label={label} color={color} hint={meaning} />;
}

function amountColumn(
  id: string,
  header: () => string,
  amountOf: (row: NodeRow) => Amount,
  look: ColumnLook,
): DataColumn<NodeRow> {
  return {
    id,
    header,
    meta: { sort: id, ...look },
    cell: ({ row: { original } }) => {
      const { resource, requested, total } = amountOf(original);
      return <AmountMeter resource={resource} used={requested} total={total} />;
    },
  };
}

export const NODE_COLUMNS: DataColumn<NodeRow>[] = [
  {
    id: "name",
    header: () => t`Node`,
    meta: { sort: "name" },
    cell: ({ row: { original } }) => <NodeLink name={original.node.name} fw={550} inRow />,
  },
  {
    id: "state",
    header: () => t`State`,
    meta: { width: "112px" },
    cell: ({ row: { original } }) => <NodeStateBadge state={original.state} />,
  },
  amountColumn(
    "cpu",
    () => t`CPU requested`,
    (row) => row.cpu,
    { width: "128px", hideBelow: 560 },
  ),
  amountColumn(
    "memory",
    () => t`Memory requested`,
    (row) => row.memory,
    { width: "15%", hideBelow: 760 },
  ),
  {
    id: "devices",
    header: () => t`GPU memory held`,
    meta: { sort: "devices", width: "15%", hideBelow: 760, below: 1 },
    cell: ({ row: { original } }) => {
      const { devices, used_memory_mib: used, memory_mib: total } = original.node.device_totals;
      return devices === 0 ? "–" : <AmountMeter resource={DEVICE_MEMORY} used={used} total={total} />;
    },
  },
  {
    id: "gpus",
    header: () => t`GPUs`,
    meta: { width: "60px", align: "right", hideBelow: 1000 },
    cell: ({ row: { original } }) => original.node.device_totals.devices || "–",
  },
  {
    id: "pods",
    header: () => t`Pods`,
    meta: { sort: "pods", width: "64px", align: "right", hideBelow: 1000 },
    cell: ({ row: { original } }) => original.pods.requested,
  },
  {
    id: "flavors",
    header: () => t`Flavors`,
    meta: { width: "14%", hideBelow: 1240 },
    cell: ({ row: { original } }) => (
      <Group gap={8} wrap="nowrap" title={original.node.flavors.join(", ")}>
        {original.node.flavors.slice(0, 1).map((name) => (
          <FlavorLink key={name} name={name} inRow />
        ))}
        {original.node.flavors.length > 1 && (
          <Text component="span" fz="xs" c="var(--kw-muted)">
            +{original.node.flavors.length - 1}
          </Text>
        )}
      </Group>
    ),
  },
  ageColumn((row) => row.node.created_at, { align: "right", hideBelow: 1000 }),
];

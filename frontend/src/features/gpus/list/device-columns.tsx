/** The columns of a list of devices. */
import { t } from "@lingui/core/macro";
import { BadgeDot } from "@/components/badge-dot";
import { AmountMeter } from "@/components/figures/amount-meter";
import { DeviceLink, NodeLink } from "@/components/object-links";
import { textColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { gpuState } from "@/lib/url/gpu-filters";
import { deviceModel } from "@/lib/words/device-words";
import { gpuStateLooks } from "../gpu-state";
import { type ClusterDevice, tenants } from "../summary";
import { formatCoresShort } from "../units";

const DEVICE_MEMORY = "nvidia.com/gpumem";

export const DEVICE_COLUMNS: DataColumn<ClusterDevice>[] = [
  {
    id: "device",
    header: () => t`Device`,
    meta: { width: "84px" },
    cell: ({ row: { original } }) => (
      <DeviceLink node={original.device.node} uuid={original.uuid} label={`#${original.device.index}`} />
    ),
  },
  {
    id: "node",
    header: () => t`Node`,
    cell: ({ row: { original } }) => <NodeLink name={original.device.node} inRow />,
  },
  textColumn(
    "type",
    () => t`Type`,
    ({ device }) => deviceModel(device.type),
    { width: "16%", hideBelow: 1000 },
  ),
  {
    id: "state",
    header: () => t`State`,
    meta: { width: "112px" },
    cell: ({ row: { original } }) => {
      const { label, color, meaning } = gpuStateLooks()[gpuState(original.device)];
      return <BadgeDot label={label} color={color} hint={meaning} />;
    },
  },
  {
    id: "memory",
    header: () => t`GPU memory held`,
    meta: { width: "15%", hideBelow: 560 },
    cell: ({ row: { original } }) => (
      <AmountMeter
        resource={DEVICE_MEMORY}
        used={original.device.used_memory_mib}
        total={original.device.memory_mib}
      />
    ),
  },
  {
    id: "cores",
    header: () => t`Cores`,
    meta: { width: "76px", align: "right", hideBelow: 760 },
    cell: ({ row: { original } }) => formatCoresShort(original.device.units),
  },
  textColumn(
    "tenants",
    () => t`Tenants`,
    (entry) =>
      tenants([entry])
        .map(({ namespace }) => namespace ?? t`in use by others`)
        .join(", ") || "–",
    { width: "16%", hideBelow: 1000 },
  ),
];

/** The devices of one cluster as a list that sorts by their use, temperature, power and free memory. */
import { t } from "@lingui/core/macro";
import { useMemo } from "react";
import { AmountMeter } from "@/components/figures/amount-meter";
import { Panel } from "@/components/panel";
import { textColumn } from "@/components/table/columns";
import { type DataColumn, DataTable, type Sort } from "@/components/table/data-table";
import type { ClusterDevice, MeasuredUse } from "../summary";
import { DEVICE_COLUMNS } from "./device-columns";
import { sortDevices } from "./device-order";

const DEVICE_MEMORY = "nvidia.com/gpumem";

const COLUMNS: DataColumn<ClusterDevice>[] = [
  ...DEVICE_COLUMNS.filter(({ id }) => id !== "cores" && id !== "memory").map((column) =>
    column.id === "node" ? { ...column, meta: { ...column.meta, sort: "node", width: "14%" } } : column,
  ),
  {
    id: "free",
    header: () => t`GPU memory held`,
    meta: { width: "15%", hideBelow: 560, sort: "free" },
    cell: ({ row: { original } }) => (
      <AmountMeter
        resource={DEVICE_MEMORY}
        used={original.device.used_memory_mib}
        total={original.device.memory_mib}
      />
    ),
  },
  measured(
    "use",
    () => t`Busy`,
    "76px",
    (use) => use.utilization_percent,
    "%",
  ),
  measured(
    "temperature",
    () => t`Temperature`,
    "116px",
    (use) => use.temperature_celsius,
    "°C",
  ),
  measured(
    "power",
    () => t`Power`,
    "84px",
    (use) => use.power_watts,
    "W",
  ),
];

function measured(
  id: string,
  header: () => string,
  width: string,
  read: (use: MeasuredUse) => number | null,
  unit: string,
): DataColumn<ClusterDevice> {
  return textColumn(
    id,
    header,
    ({ use }) => {
      const value = use === undefined ? null : read(use);
      return value === null ? "–" : `${Math.round(value)} ${unit}`;
    },
    { width, align: "right", hideBelow: id === "use" ? 420 : 760, sort: id },
  );
}

export interface DeviceListProps {
  rows: ClusterDevice[];
  sort: Sort | undefined;
  onSort: (sort: Sort | undefined) => void;
  onOpen: (uuid: string) => void;
}

export function DeviceList({ rows, sort, onSort, onOpen }: DeviceListProps) {
  const sorted = useMemo(() => sortDevices(rows, sort), [rows, sort]);
  return (
    <Panel flush>
      <DataTable
        label={t`Devices`}
        columns={COLUMNS}
        rows={sorted}
        rowKey={({ device, uuid }) => `${device.node}/${uuid}`}
        onOpen={({ uuid }) => onOpen(uuid)}
        sort={sort ?? "node"}
        onSort={onSort}
        height="max(420px, calc(100dvh - 320px))"
        empty={null}
      />
    </Panel>
  );
}

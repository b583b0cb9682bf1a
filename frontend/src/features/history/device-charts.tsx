/** The held and the used part of the devices, below their total. */
import { t } from "@lingui/core/macro";
import type { Metric } from "@/api/history";
import type { LiveData } from "@/api/types";
import { formatMib } from "@/lib/quantity";
import { HistoryChart } from "./history-chart";
import { type ChartFrame, formatAverage } from "./workload-charts";

export const DEVICE_METRICS = [
  "devices",
  "devices_held",
  "devices_idle",
  "devices_stranded",
  "memory_mib",
  "memory_held_mib",
  "memory_used_mib",
  "cores_percent",
  "cores_held_percent",
  "cores_used_percent",
] as const satisfies Metric[];

/** The live figures of devices. */
export function deviceTail({ totals }: LiveData) {
  return [
    { metric: "devices" as const, value: totals.devices },
    { metric: "memory_mib" as const, value: totals.memory_mib },
    { metric: "memory_held_mib" as const, value: totals.used_memory_mib },
    { metric: "cores_percent" as const, value: totals.cores_percent },
    { metric: "cores_held_percent" as const, value: totals.used_cores_percent },
  ];
}

const HELD = "var(--kw-used)";
const USED = "var(--mantine-color-teal-6)";
const LIMIT = "var(--kw-muted)";
const noDevices = () => t`No device was registered in this period.`;

/** A queue has no total: a line without data is not drawn. */
export function DeviceCharts({ cores = true, ...frame }: ChartFrame & { cores?: boolean }) {
  const empty = noDevices();
  return (
    <>
      <HistoryChart
        {...frame}
        title={t`GPU memory`}
        format={formatMib}
        ticks="binary"
        lines={[
          { metric: "memory_mib", label: t`Total`, color: LIMIT, limit: true },
          { metric: "memory_held_mib", label: t`Held`, color: HELD, fill: true },
          { metric: "memory_used_mib", label: t`Measured use`, color: USED },
        ]}
        empty={empty}
      />
      {cores && (
        <HistoryChart
          {...frame}
          title={t`GPU cores, in devices`}
          format={(value) => formatAverage(value / 100)}
          atLeast={100}
          lines={[
            { metric: "cores_percent", label: t`Total`, color: LIMIT, limit: true },
            { metric: "cores_held_percent", label: t`Held`, color: HELD, fill: true },
            { metric: "cores_used_percent", label: t`Measured use`, color: USED },
          ]}
          empty={empty}
        />
      )}
      <HeldChart {...frame} />
    </>
  );
}

/** Demand, allocation and busy time, all in devices. */
export function DemandChart(frame: ChartFrame) {
  return (
    <HistoryChart
      {...frame}
      wide
      title={t`GPUs: demand, held and busy`}
      format={formatAverage}
      lines={[
        { metric: "devices", label: t`Total`, color: LIMIT, limit: true },
        { metric: "devices_demanded", label: t`Demand`, color: "var(--mantine-color-yellow-6)" },
        { metric: "devices_held", label: t`Held`, color: HELD, fill: true },
        { metric: "cores_used_percent", label: t`Busy`, color: USED, per: 100 },
      ]}
      empty={noDevices()}
    />
  );
}

export function HeldChart(frame: ChartFrame) {
  return (
    <HistoryChart
      {...frame}
      title={t`Devices held`}
      format={formatAverage}
      lines={[
        { metric: "devices", label: t`Total`, color: LIMIT, limit: true },
        { metric: "devices_held", label: t`Held`, color: HELD, fill: true },
        { metric: "devices_idle", label: t`Held but idle`, color: "var(--mantine-color-grape-5)" },
        { metric: "devices_stranded", label: t`Stranded`, color: "var(--mantine-color-orange-6)" },
      ]}
      empty={noDevices()}
    />
  );
}

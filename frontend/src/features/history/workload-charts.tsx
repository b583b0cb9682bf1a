/** The charts that every scope has: who waits and why, how long, what started and ended. */
import { t } from "@lingui/core/macro";
import type { Metric } from "@/api/history";
import { numbers } from "@/lib/language";
import { formatCount } from "@/lib/quantity";
import { formatDuration } from "@/lib/time";
import { shortReason } from "@/lib/words/pending-reason";
import type { ChartLine, HistoryChartProps } from "./history-chart";
import { HistoryChart } from "./history-chart";
import type { HistorySeries } from "./history-series";

export const WORKLOAD_METRICS = [
  "pending",
  "pending_by_reason",
  "admitted",
  "started",
  "ended",
  "preempted",
  "evicted",
  "wait_p50",
  "wait_p90",
] as const satisfies Metric[];

export type ChartFrame = Pick<HistoryChartProps, "series" | "version" | "range" | "marks" | "onMoment">;

const REASON_COLORS = ["yellow-6", "orange-6", "grape-5", "cyan-6", "pink-5", "gray-5"];

export function WorkloadCharts(frame: ChartFrame) {
  return (
    <>
      <CountsChart {...frame} />
      <ReasonsChart {...frame} />
      <WaitsChart {...frame} />
      <StartsChart {...frame} />
    </>
  );
}

function CountsChart(frame: ChartFrame) {
  return (
    <HistoryChart
      {...frame}
      title={t`Workloads`}
      format={formatAverage}
      atLeast={5}
      lines={[
        { metric: "pending", label: t`Pending`, color: "var(--mantine-color-yellow-6)" },
        { metric: "admitted", label: t`Admitted`, color: "var(--mantine-color-teal-6)" },
      ]}
    />
  );
}

function ReasonsChart(frame: ChartFrame) {
  return (
    <HistoryChart
      {...frame}
      title={t`Why they wait`}
      format={formatAverage}
      atLeast={5}
      lines={reasonLines(frame.series)}
      empty={t`No workload waited in this period.`}
    />
  );
}

export function WaitsChart(frame: ChartFrame) {
  return (
    <HistoryChart
      {...frame}
      title={t`Waiting time before the start`}
      format={formatDuration}
      ticks="duration"
      atLeast={10}
      lines={[
        { metric: "wait_p50", label: t`Median`, color: "var(--mantine-color-cyan-6)" },
        { metric: "wait_p90", label: t`90th percentile`, color: "var(--mantine-color-grape-5)" },
      ]}
      empty={t`No workload started in this period.`}
    />
  );
}

export function StartsChart(frame: ChartFrame) {
  return (
    <HistoryChart
      {...frame}
      title={
        frame.series === undefined
          ? t`Starts and ends`
          : t`Starts and ends, per ${formatDuration(frame.series.step)}`
      }
      format={formatAverage}
      atLeast={2}
      lines={[
        { metric: "started", label: t`Started`, color: "var(--mantine-color-teal-6)" },
        { metric: "ended", label: t`Ended`, color: "var(--mantine-color-blue-5)" },
        { metric: "preempted", label: t`Preempted`, color: "var(--mantine-color-red-6)" },
        { metric: "evicted", label: t`Evicted for other reasons`, color: "var(--mantine-color-orange-6)" },
      ]}
    />
  );
}

/** The reasons that most wait for, the most frequent first. */
function reasonLines(series: HistorySeries | undefined): ChartLine[] {
  const sum = (values: readonly (number | null)[] = []) =>
    values.reduce<number>((total, value) => total + (value ?? 0), 0);
  return (series?.keys("pending_by_reason") ?? [])
    .map((key) => ({ key, total: sum(series?.find(key)) }))
    .toSorted((a, b) => b.total - a.total)
    .slice(0, REASON_COLORS.length)
    .map(({ key: { metric, reason = "" } }, place) => ({
      metric,
      reason,
      label: shortReason(reason || "PendingEvaluation"),
      color: `var(--mantine-color-${REASON_COLORS[place]})`,
    }));
}

const oneDecimal = numbers({ maximumFractionDigits: 1 });

/** A mean of counts: whole where it is large. */
export function formatAverage(value: number): string {
  return value >= 100 ? formatCount(value) : oneDecimal(value);
}

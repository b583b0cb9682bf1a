/** The history of one ClusterQueue, cohort or LocalQueue: workloads, quota and devices. */
import { t } from "@lingui/core/macro";
import { NativeSelect } from "@mantine/core";
import { useCallback, useState } from "react";
import type { HistoryScope, Metric } from "@/api/history";
import { waiting } from "@/api/live/live-data";
import type { LiveData } from "@/api/types";
import { formatAmountShort, isBinary } from "@/lib/quantity";
import { DEVICE_METRICS, DeviceCharts, HeldChart } from "./device-charts";
import { HistoryChart } from "./history-chart";
import { HistorySection } from "./history-section";
import type { HistorySeries, SeriesKey } from "./history-series";
import { useHistory } from "./use-history";
import {
  type ChartFrame,
  formatAverage,
  StartsChart,
  WaitsChart,
  WORKLOAD_METRICS,
  WorkloadCharts,
} from "./workload-charts";

const QUOTA_METRICS = ["nominal", "ceiling", "used", "borrowed", "lent"] as const satisfies Metric[];
const METRICS = [...WORKLOAD_METRICS, "share", ...QUOTA_METRICS, ...DEVICE_METRICS] as const;

export interface QueueHistoryProps {
  scope: Extract<HistoryScope, "cluster_queue" | "cohort" | "local_queue">;
  /** The LocalQueue as namespace/name. */
  name: string;
}

export function QueueHistory({ scope, name }: QueueHistoryProps) {
  const read = useCallback(
    (data: LiveData) => (scope === "cluster_queue" ? tail(data, name) : []),
    [scope, name],
  );
  const { frame, error, refetch } = useHistory({ scope, name, metrics: METRICS }, read);
  const [folded, setFolded] = useState(true);
  const hasQuota = scope !== "local_queue";
  const fold = { folded, onFold: setFolded };
  if (folded) {
    return (
      <HistorySection marks={frame} error={error} onRetry={() => void refetch()} fold={fold}>
        <WaitsChart {...frame} />
        {hasQuota ? <QuotaChart {...frame} /> : <HeldChart {...frame} />}
        <StartsChart {...frame} />
      </HistorySection>
    );
  }
  return (
    <HistorySection marks={frame} error={error} onRetry={() => void refetch()} fold={fold}>
      <WorkloadCharts {...frame} />
      {hasQuota && <QuotaChart {...frame} />}
      {hasQuota && (
        <HistoryChart
          {...frame}
          title={t`Weighted share, ‰ of what the cohort lends`}
          format={formatAverage}
          lines={[{ metric: "share", label: t`Share`, color: "var(--kw-borrowed)", fill: true }]}
        />
      )}
      <DeviceCharts {...frame} />
    </HistorySection>
  );
}

function tail(data: LiveData, name: string) {
  const queue = data.cluster_queues[name];
  if (queue === undefined) return [];
  return [
    { metric: "pending" as const, value: waiting(queue) },
    { metric: "admitted" as const, value: queue.admitted },
    ...queue.usage.flatMap(({ flavor, resource, nominal, used, borrowed }) => [
      { metric: "nominal" as const, flavor, resource, value: nominal },
      { metric: "used" as const, flavor, resource, value: used },
      { metric: "borrowed" as const, flavor, resource, value: borrowed },
    ]),
  ];
}

/** The quota of one flavor and resource at a time, first of the fullest. */
function QuotaChart(frame: ChartFrame) {
  const cells = cellsOf(frame.series);
  const [chosen, choose] = useState<string>();
  const cell = cells.find((each) => labelOf(each) === chosen) ?? cells[0] ?? { flavor: "", resource: "" };
  const { flavor = "", resource = "" } = cell;
  return (
    <HistoryChart
      {...frame}
      title={t`Quota`}
      aside={
        cells.length > 0 && (
          <NativeSelect
            size="xs"
            aria-label={t`Flavor and resource`}
            data={cells.map(labelOf)}
            value={labelOf(cell)}
            onChange={(event) => choose(event.currentTarget.value)}
            ml="auto"
            maw={260}
          />
        )
      }
      format={(value) => formatAmountShort(resource, value)}
      ticks={isBinary(resource) ? "binary" : "decimal"}
      lines={[
        {
          metric: "ceiling",
          flavor,
          resource,
          label: t`May borrow up to`,
          color: "var(--kw-borrowed)",
          limit: true,
        },
        { metric: "nominal", flavor, resource, label: t`Nominal`, color: "var(--kw-muted)", limit: true },
        { metric: "used", flavor, resource, label: t`Used`, color: "var(--kw-used)", fill: true },
        { metric: "borrowed", flavor, resource, label: t`Borrowed`, color: "var(--kw-borrowed)" },
        { metric: "lent", flavor, resource, label: t`Lent`, color: "var(--mantine-color-teal-6)" },
      ]}
      empty={t`No quota in this period.`}
    />
  );
}

function labelOf({ flavor = "", resource = "" }: Partial<SeriesKey>): string {
  return t`${resource} of ${flavor}`;
}

function cellsOf(series: HistorySeries | undefined): SeriesKey[] {
  const last = (key: SeriesKey) => series?.find(key)?.findLast((value) => value !== null) ?? 0;
  const fullness = (key: SeriesKey) => last(key) / Math.max(1, last({ ...key, metric: "nominal" }));
  return (series?.keys("used") ?? []).toSorted((a, b) => fullness(b) - fullness(a));
}

/** One queue's use against its quota over time, and the queues that held the difference. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { NativeSelect, Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useCluster, useIsSeveral } from "@/api/cluster";
import { type History, historyQuery, type Metric } from "@/api/history";
import { type Report, reportQuery } from "@/api/reports";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { formatAmountShort, isBinary } from "@/lib/quantity";
import type { TimeRange } from "@/lib/url/time-range";
import { ofResource } from "./cells";
import { ReportTable } from "./report-table";
import { columnTitle } from "./report-words";
import classes from "./reports.module.css";

const TimeSeries = lazy(async () => ({
  default: (await import("@/components/figures/time-series")).TimeSeries,
}));

const METRICS = ["nominal", "used"] as const satisfies Metric[];
const HEIGHT = 200;

export interface FairnessDetailsProps {
  /** The report for one resource; the queues that miss most come first. */
  report: Report;
  resource: string;
  range: TimeRange;
}

export function FairnessDetails({ report, resource, range }: FairnessDetailsProps) {
  const several = useIsSeveral();
  const queues = [...new Set(cellsOf(report, "cluster_queue"))];
  const [chosen, choose] = useState<string>();
  const queue = queues.find((name) => name === chosen) ?? queues[0];
  if (queue === undefined) return null;
  const choice = (
    <NativeSelect
      size="xs"
      aria-label={t`ClusterQueue`}
      data={queues}
      value={queue}
      onChange={(event) => choose(event.currentTarget.value)}
      maw={220}
    />
  );
  return (
    <div className={`${classes.report} ${classes.section}`}>
      {/* A chart is of one cluster: queues of several may have one name. */}
      {!several && <ShareLine queue={queue} resource={resource} range={range} choice={choice} />}
      <Holders queue={queue} resource={resource} range={range} choice={several ? choice : undefined} />
    </div>
  );
}

function cellsOf({ columns, rows }: Report, column: string): string[] {
  const place = columns.findIndex(({ name }) => name === column);
  return rows.map((row) => String(row[place]));
}

interface PartProps {
  queue: string;
  resource: string;
  range: TimeRange;
  choice: React.ReactNode;
}

function ShareLine({ queue, resource, range, choice }: PartProps) {
  const selection = { scope: "cluster_queue" as const, name: queue, metrics: METRICS, range };
  const history = useQuery(historyQuery(useCluster(), selection));
  const { data } = history;
  const lines = data === undefined ? [] : [sumOf(data, "nominal", resource), sumOf(data, "used", resource)];
  const [quota = [], used = []] = lines;
  const isKnown = [...quota, ...used].some((value) => value !== null);
  return (
    <Panel title={t`Use against quota over time`} aside={choice}>
      <QueryError title={t`The history cannot be shown`} query={history} />
      {history.isPending && <Skeleton height={HEIGHT} />}
      {data !== undefined && !isKnown && (
        <Text size="sm" c="var(--kw-muted)">
          <Trans>No measurements in this period.</Trans>
        </Text>
      )}
      {data !== undefined && isKnown && (
        <Suspense fallback={<Skeleton height={HEIGHT} />}>
          <TimeSeries
            label={t`Use of ${queue} against its quota of ${resource}`}
            times={data.times}
            lines={[
              { label: t`Quota`, color: "var(--kw-muted)", values: quota, limit: true },
              { label: t`Used`, color: "var(--kw-used)", values: used, fill: true },
            ]}
            version={history.dataUpdatedAt}
            format={(value) => formatAmountShort(resource, value)}
            ticks={isBinary(resource) ? "binary" : "decimal"}
            atLeast={1}
            height={HEIGHT}
            from={Date.parse(data.since) / 1000}
            to={Date.parse(data.until) / 1000}
          />
        </Suspense>
      )}
    </Panel>
  );
}

/** The sum over all flavors; null where nothing is known of any. */
function sumOf({ times, series }: History, metric: Metric, resource: string): (number | null)[] {
  const found = series.filter((line) => line.metric === metric && line.resource === resource);
  return times.map((_, place) =>
    found.reduce<number | null>((sum, { values }) => {
      const value = values[place] ?? null;
      return value === null ? sum : (sum ?? 0) + value;
    }, null),
  );
}

function Holders({ queue, resource, range, choice }: PartProps) {
  const found = useQuery(reportQuery(useCluster(), { kind: "fairness", by: ["holder"], range }));
  const title = t`Holders of the quota that ${queue} lacked`;
  const rows = found.data === undefined ? undefined : ofQueue(ofResource(found.data, resource), queue);
  const isFlush = rows !== undefined && rows.rows.length > 0;
  return (
    <Panel title={title} aside={choice} flush={isFlush}>
      <QueryError title={t`The holders cannot be shown`} query={found} />
      {found.isPending && <Skeleton height={HEIGHT} />}
      {rows !== undefined &&
        (isFlush ? (
          <ReportTable report={rows} title={title} titleOf={columnTitle} />
        ) : (
          <Text size="sm" c="var(--kw-muted)">
            {t`It lacked no quota while its workloads waited.`}
          </Text>
        ))}
    </Panel>
  );
}

/** The rows of one queue, without its name. */
function ofQueue(report: Report, queue: string): Report {
  const place = report.columns.findIndex(({ name }) => name === "cluster_queue");
  const without = <Cell,>(cells: readonly Cell[]) => cells.filter((_, index) => index !== place);
  const rows = report.rows.filter((row) => row[place] === queue);
  return { ...report, columns: without(report.columns), rows: rows.map(without) };
}

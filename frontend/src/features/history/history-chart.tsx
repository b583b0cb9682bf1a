/** One chart of a page's history: drawn, or as a table for who reads it better that way. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, ScrollArea, Skeleton, Table, Tooltip } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { Ticks, TimeMark, TimeSeriesLine } from "@/components/figures/time-series";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/panel";
import { formatTimestamp } from "@/lib/time";
import { lengthOf, type TimeRange } from "@/lib/url/time-range";
import classes from "./history.module.css";
import type { HistorySeries, SeriesKey } from "./history-series";
import { useChooseRange } from "./use-history";

const TimeSeries = lazy(async () => ({
  default: (await import("@/components/figures/time-series")).TimeSeries,
}));

const HEIGHT = 180;
const WIDE_HEIGHT = 220;
/** Charts of this name share one cursor. */
const CURSOR = "history";

export interface ChartLine extends SeriesKey {
  label: string;
  color: string;
  fill?: boolean;
  /** A limit: drawn dashed. */
  limit?: boolean;
  /** The divisor of a value whose unit is not that of the chart. */
  per?: number;
}

export interface HistoryChartProps {
  title: string;
  /** Undefined until the first answer. */
  series: HistorySeries | undefined;
  version: unknown;
  range: TimeRange;
  marks: readonly TimeMark[];
  /** Opens what was decided in the minute of a time. */
  onMoment: (seconds: number) => void;
  lines: readonly ChartLine[];
  format: (value: number) => string;
  ticks?: Ticks;
  atLeast?: number;
  /** Beside the title. */
  aside?: ReactNode;
  /** The text for a chart without any value. */
  empty?: string;
  /** Across all columns of the page, and higher. */
  wide?: boolean;
}

export function HistoryChart(props: HistoryChartProps) {
  const { title, series, aside, wide = false, empty = t`No measurements in this period.` } = props;
  const height = wide ? WIDE_HEIGHT : HEIGHT;
  const [asTable, setAsTable] = useState(false);
  const choose = useChooseRange();
  const lines = series === undefined ? [] : drawn(series, props.lines);
  const known = lines.some(({ values }) => values.some((value) => value !== null));
  return (
    <Panel
      title={title}
      {...(wide ? { className: classes.wide } : {})}
      aside={
        <>
          {aside}
          <Tooltip label={asTable ? t`Show as chart` : t`Show as table`}>
            <ActionIcon
              variant="subtle"
              color="gray"
              size="sm"
              aria-label={`${title}: ${asTable ? t`show as chart` : t`show as table`}`}
              onClick={() => setAsTable(!asTable)}
            >
              <Icon name={asTable ? "reports" : "table"} size={15} />
            </ActionIcon>
          </Tooltip>
        </>
      }
    >
      {series === undefined && (
        <Skeleton role="status" height={height + 26} aria-label={t`${title}: loading`} />
      )}
      {series !== undefined && !known && (
        <div className={classes.empty} style={{ height: height + 26 }}>
          {empty}
        </div>
      )}
      {series !== undefined && known && asTable && (
        <ValueTable title={title} times={series.times} lines={lines} format={props.format} />
      )}
      {series !== undefined && known && !asTable && (
        <Suspense fallback={<Skeleton height={height + 26} />}>
          <TimeSeries
            label={title}
            times={series.times}
            lines={lines}
            version={props.version}
            format={props.format}
            ticks={props.ticks ?? "decimal"}
            atLeast={props.atLeast ?? 1}
            height={height}
            {...windowOf(series, props.range)}
            marks={props.marks}
            onZoom={choose}
            onMoment={props.onMoment}
            cursor={CURSOR}
          />
        </Suspense>
      )}
    </Panel>
  );
}

const LEAST_SECONDS = 300;

/** From one time to another as they are; a range that ends now is not longer than what is known of it. */
function windowOf(series: HistorySeries, range: TimeRange) {
  if (range.until !== undefined && range.since !== undefined)
    return { from: Date.parse(range.since) / 1000, to: Date.parse(range.until) / 1000 };
  const known = Math.max(LEAST_SECONDS, (series.times.at(-1) ?? 0) - series.begin);
  return { spanSeconds: Math.min(known, lengthOf(range, Date.now())) };
}

/** A line without a value in the whole time is left out: a legend of dashes says nothing. */
function drawn(series: HistorySeries, lines: readonly ChartLine[]): TimeSeriesLine[] {
  return lines.flatMap(({ label, color, fill, limit, per, ...key }) => {
    const found = series.find(key);
    const values = per === undefined ? found : found?.map((value) => (value === null ? null : value / per));
    return values === undefined || values.every((value) => value === null)
      ? []
      : [{ label, color, values, ...(fill ? { fill } : {}), ...(limit ? { limit } : {}) }];
  });
}

interface ValueTableProps {
  title: string;
  times: readonly number[];
  lines: readonly TimeSeriesLine[];
  format: (value: number) => string;
}

/** The newest first. */
function ValueTable({ title, times, lines, format }: ValueTableProps) {
  const rows = times.map((time, place) => ({ time, place })).toReversed();
  return (
    <ScrollArea
      h={HEIGHT + 26}
      className={classes.table}
      viewportProps={{ tabIndex: 0, "aria-label": title }}
    >
      <Table stickyHeader verticalSpacing={2}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>
              <Trans>Time</Trans>
            </Table.Th>
            {lines.map(({ label }) => (
              <Table.Th key={label} ta="right">
                {label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ time, place }) => (
            <Table.Tr key={time}>
              <Table.Td>{formatTimestamp(new Date(time * 1000).toISOString())}</Table.Td>
              {lines.map(({ label, values }) => {
                const value = values[place];
                return (
                  <Table.Td key={label} ta="right">
                    {value === null || value === undefined ? t`no data` : format(value)}
                  </Table.Td>
                );
              })}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  );
}

/** What was: waits and throughput, use and its price, idle devices, preemptions. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Anchor, Group, MultiSelect, NativeSelect, Skeleton, Table, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster, useIsSeveral } from "@/api/cluster";
import {
  type Report,
  type ReportGroup,
  type ReportSelection,
  reportCsvUrl,
  reportQuery,
} from "@/api/reports";
import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { TimePicker } from "@/components/time/time-picker";
import { REPORT_KINDS, REPORT_RANGE, REPORT_RANGES, type ReportFilters } from "@/lib/url/report-filters";
import { boundedRange, isEmpty, parseTimeRange, withoutTime } from "@/lib/url/time-range";
import { BarPicture } from "./bar-picture";
import { barsOf, cellWords, formatCell, hoursOf, isNumeric, ofResource, resourcesOf } from "./cells";
import classes from "./reports.module.css";

const titles = (): Record<(typeof REPORT_KINDS)[number], string> => ({
  waits: t`Waits and throughput`,
  usage: t`Use and cost`,
  idle: t`Idle devices`,
  preemptions: t`Preemptions`,
});

const notes = (): Record<(typeof REPORT_KINDS)[number], string> => ({
  waits: t`Waiting times of workloads that started in this period, and workloads that finished, were preempted or were evicted.`,
  usage: t`Hours of one resource at a time. A device slice is charged the larger of its memory and core shares; stranded remainders are not charged.`,
  idle: t`Devices that were held but hardly used, according to monitors. Devices without a monitor are listed separately.`,
  preemptions: t`Preemptions: victim, preemptor and reason.`,
});

const groupTitles = (): Record<string, string> => ({
  cluster: t`Cluster`,
  cluster_queue: t`ClusterQueue`,
  local_queue: t`LocalQueue`,
  namespace: t`Namespace`,
  user: t`User name`,
  priority: t`Priority`,
  size: t`Size`,
  month: t`Month`,
  flavor: t`Flavor`,
  day: t`Day`,
  preemptor: t`Preemptor`,
  preemptor_cluster_queue: t`Preemptor's ClusterQueue`,
  preemptor_namespace: t`Preemptor's namespace`,
  reason: t`Reason`,
  workload: t`Workload`,
});

/** What the columns of a report are called; one that is not known here keeps the server's title. */
const columnTitles = (): Record<string, string> => ({
  ...groupTitles(),
  resource: t`Resource`,
  hours: t`Unit-hours`,
  quota_hours: t`Nominal quota`,
  cost: t`Cost`,
  currency: t`Currency`,
  held_device_hours: t`GPU-hours held`,
  idle_device_hours: t`GPU-hours idle`,
  unmeasured_device_hours: t`GPU-hours not measured`,
  memory_used_percent: t`Held memory used`,
  cores_used_percent: t`Held cores used`,
  idle_cost: t`Cost of idle time`,
  preemptions: t`Preemptions`,
  workloads: t`Workloads preempted`,
  last_at: t`Last preemption`,
  started: t`Started`,
  wait_p50_seconds: t`Median wait`,
  wait_p90_seconds: t`90th percentile`,
  wait_max_seconds: t`Longest wait`,
  finished: t`Finished`,
  failed: t`Failed`,
  run_mean_seconds: t`Mean run time`,
  preempted: t`Preempted`,
  evicted: t`Evicted`,
  device_hours: t`GPU-hours`,
});

function columnTitle({ name, title }: Report["columns"][number]): string {
  return columnTitles()[name] ?? title;
}

/** Where the reader chose no groups, and the page does not begin with the server's: who used most. */
const USUAL_GROUPS: Partial<Record<(typeof REPORT_KINDS)[number], ReportGroup[]>> = { usage: ["user"] };
/** What a picture begins with, where it is not the first column. */
const DRAWN_FIRST: Partial<Record<(typeof REPORT_KINDS)[number], string>> = { idle: "idle_device_hours" };

export interface ReportsPageProps {
  filters: ReportFilters;
  onFilter: (filters: ReportFilters) => void;
}

export function ReportsPage({ filters, onFilter }: ReportsPageProps) {
  const cluster = useCluster();
  const kind = filters.report ?? "waits";
  const by = (filters.by?.split(",") ?? []) as ReportGroup[];
  const selection: ReportSelection = {
    kind,
    by: by.length === 0 ? (USUAL_GROUPS[kind] ?? []) : by,
    range: boundedRange(parseTimeRange(filters), REPORT_RANGE),
  };
  const range = isEmpty(parseTimeRange(filters)) ? { last: REPORT_RANGE } : parseTimeRange(filters);
  const report = useQuery(reportQuery(cluster, selection));
  const several = useIsSeveral();
  const resources = report.data === undefined ? [] : resourcesOf(report.data);
  const resource = resources.find((each) => each === filters.resource) ?? resources[0];
  const usual = selection.by.map((name) => groupTitles()[name] ?? name).join(", ") || t`default groups`;
  const groups = (report.data?.by ?? []).filter((name) => several || name !== "cluster" || by.includes(name));
  return (
    <>
      <PageHeader
        title={t`Reports`}
        facts={notes()[kind]}
        actions={
          kind === "waits" ? (
            <TextLink to="/accuracy" fz="sm">{t`Accuracy of estimated starts`}</TextLink>
          ) : (
            kind === "preemptions" && (
              <TextLink to="/decisions" search={{ ...range, action: "Preempt" }} fz="sm">
                {t`Each preemption`}
              </TextLink>
            )
          )
        }
      />
      <Tabs
        value={kind}
        onChange={(value) => {
          const next = REPORT_KINDS.find((known) => known === value);
          if (next !== undefined) onFilter({ ...parseTimeRange(filters), report: next });
        }}
      >
        <Tabs.List>
          {REPORT_KINDS.map((each) => (
            <Tabs.Tab key={each} value={each}>
              {titles()[each]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </Tabs>
      <Group my="md" align="flex-end" gap="sm">
        <TimePicker
          range={parseTimeRange(filters)}
          ranges={REPORT_RANGES}
          fallback={REPORT_RANGE}
          onChange={(range) => onFilter({ ...withoutTime(filters), ...range })}
        />
        {resource !== undefined && (
          <NativeSelect
            label={t`Resource`}
            size="xs"
            value={resource}
            data={resources.map((value) => ({ value, label: hoursOf(value) }))}
            onChange={(event) => onFilter({ ...filters, resource: event.currentTarget.value })}
          />
        )}
        {groups.length > 0 && (
          <MultiSelect
            label={t`Group by`}
            size="xs"
            miw={260}
            placeholder={by.length === 0 ? usual : ""}
            data={groups.map((value) => ({ value, label: groupTitles()[value] ?? value }))}
            value={by}
            onChange={(chosen) => {
              const { by: _, ...others } = filters;
              onFilter(chosen.length === 0 ? others : { ...others, by: chosen.join(",") });
            }}
          />
        )}
        <Anchor href={reportCsvUrl(cluster, selection)} download fz="sm" pb={4}>
          <Trans>Download CSV</Trans>
        </Anchor>
      </Group>
      {report.error !== null && (
        <Panel>
          <QueryError title={t`The report cannot be shown`} query={report} />
        </Panel>
      )}
      {report.isPending && <Skeleton height={320} />}
      {report.data !== undefined && report.error === null && (
        <ReportView
          kind={kind}
          report={resource === undefined ? report.data : ofResource(report.data, resource)}
          hours={resource === undefined ? undefined : hoursOf(resource)}
        />
      )}
    </>
  );
}

interface ReportViewProps {
  kind: (typeof REPORT_KINDS)[number];
  report: Report;
  /** What the column of hours is called, where it is of one resource. */
  hours: string | undefined;
}

function ReportView({ kind, report, hours }: ReportViewProps) {
  const titleOf = (column: Report["columns"][number]) =>
    column.name === "hours" && hours !== undefined ? hours : columnTitle(column);
  const numeric = report.columns.filter(isNumeric);
  const [chosen, choose] = useState<string>();
  const first = numeric.find(({ name }) => name === DRAWN_FIRST[kind]) ?? numeric[0];
  const column = numeric.find(({ name }) => name === chosen) ?? first;
  if (report.rows.length === 0 || column === undefined) {
    return (
      <Panel>
        <EmptyState icon="reports" title={t`Nothing to report for this period`}>
          {kind === "usage" || kind === "waits"
            ? t`Rows appear once a workload has held quota.`
            : t`No such events or measurements.`}
        </EmptyState>
      </Panel>
    );
  }
  const bars = barsOf(report, column.name);
  return (
    <div className={classes.report}>
      <Panel
        title={t`Top rows`}
        aside={
          <NativeSelect
            size="xs"
            aria-label={t`Value in the chart`}
            value={column.name}
            data={numeric.map((each) => ({ value: each.name, label: titleOf(each) }))}
            onChange={(event) => choose(event.currentTarget.value)}
          />
        }
      >
        <BarPicture
          title={pictureTitle(titles()[kind], titleOf(column))}
          bars={bars}
          format={(value) => formatCell(value, column.kind, report.currency)}
        />
      </Panel>
      <Panel flush>
        <ReportTable report={report} title={titles()[kind]} titleOf={titleOf} />
      </Panel>
    </div>
  );
}

/** "Idle devices: GPU-hours idle"; a column with the report's own name is not said twice. */
function pictureTitle(report: string, column: string): string {
  return report === column ? report : `${report}: ${column}`;
}

interface ReportTableProps {
  report: Report;
  title: string;
  titleOf: (column: Report["columns"][number]) => string;
}

function ReportTable({ report, title, titleOf }: ReportTableProps) {
  const { columns, rows, totals, currency } = report;
  return (
    <WideTable blocks>
      <Table verticalSpacing={5} highlightOnHover layout="auto" aria-label={title}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column.name} ta={isNumeric(column) ? "right" : "left"}>
                {titleOf(column)}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.join("\n")}>
              {columns.map((column, place) => (
                <Table.Td
                  key={column.name}
                  ta={isNumeric(column) ? "right" : "left"}
                  data-label={titleOf(column)}
                >
                  {cellWords(row[place], column, currency)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
        {Object.keys(totals).length > 0 && (
          <Table.Tfoot>
            <Table.Tr>
              {columns.map((column, place) => (
                <Table.Th key={column.name} ta={isNumeric(column) ? "right" : "left"}>
                  {place === 0
                    ? t`All`
                    : column.name in totals
                      ? formatCell(totals[column.name], column.kind, currency)
                      : ""}
                </Table.Th>
              ))}
            </Table.Tr>
            {"stranded_device_hours" in totals && (
              <Table.Tr>
                <Table.Td colSpan={columns.length} data-wide>
                  <Trans>
                    Stranded, not charged: {formatCell(totals.stranded_device_hours, "hours", currency)}{" "}
                    GPU-hours
                  </Trans>
                </Table.Td>
              </Table.Tr>
            )}
          </Table.Tfoot>
        )}
      </Table>
    </WideTable>
  );
}

/** Reports: waits and throughput, use and its price, idle devices, preemptions. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Anchor, Group, MultiSelect, NativeSelect, Skeleton, Tabs } from "@mantine/core";
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
import { TimePicker } from "@/components/time/time-picker";
import { REPORT_KINDS, REPORT_RANGE, REPORT_RANGES, type ReportFilters } from "@/lib/url/report-filters";
import { boundedRange, isEmpty, parseTimeRange, withoutTime } from "@/lib/url/time-range";
import { BarPicture } from "./bar-picture";
import { barsOf, formatCell, hoursOf, isNumeric, ofResource, resourcesOf } from "./cells";
import { FairnessDetails } from "./fairness-details";
import { Loops } from "./loops";
import { ReportTable } from "./report-table";
import { columnTitle, groupTitles } from "./report-words";
import classes from "./reports.module.css";

const titles = (): Record<(typeof REPORT_KINDS)[number], string> => ({
  waits: t`Waits and throughput`,
  usage: t`Use and cost`,
  idle: t`Idle devices`,
  preemptions: t`Preemptions`,
  fairness: t`Fairness`,
});

const notes = (): Record<(typeof REPORT_KINDS)[number], string> => ({
  waits: t`Waiting times of workloads that started in this period, and the numbers of workloads that finished, were preempted or were evicted.`,
  usage: t`Hours of one resource at a time. A device slice is charged the larger of its memory and core shares; stranded remainders are not charged.`,
  idle: t`Devices that were held but hardly used, according to monitors. Devices without a monitor are listed separately.`,
  preemptions: t`Preemptions: victim, preemptor, reason, and the hours of work that the victims lose unless they checkpoint.`,
  fairness: t`Use of each ClusterQueue compared with its nominal quota. A shortfall counts only while workloads of the queue waited for any resource.`,
});

/** The groups before the reader chooses some, where they are not the server's: use begins with the largest users. */
const USUAL_GROUPS: Partial<Record<(typeof REPORT_KINDS)[number], ReportGroup[]>> = { usage: ["user"] };
/** The column with which a picture begins, where it is not the first. */
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
  const groups = (kind === "fairness" ? [] : (report.data?.by ?? [])).filter(
    (name) => several || name !== "cluster" || by.includes(name),
  );
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
      {kind === "preemptions" && <Loops range={selection.range} />}
      {kind === "fairness" && report.data !== undefined && resource !== undefined && (
        <FairnessDetails
          key={`${cluster} ${resource}`}
          report={ofResource(report.data, resource)}
          resource={resource}
          range={selection.range}
        />
      )}
    </>
  );
}

interface ReportViewProps {
  kind: (typeof REPORT_KINDS)[number];
  report: Report;
  /** The title of the column of hours, where it is of one resource. */
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

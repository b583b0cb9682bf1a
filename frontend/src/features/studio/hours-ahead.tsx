/** The hours after a plan: starts, ends, waits and the use of devices by hour, without the plan and with it. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, Select, SimpleGrid, Skeleton, Stack, Table, Text } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { WhatIf } from "@/api/types";
import { ClusterQueueLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatCount } from "@/lib/quantity";
import { formatDuration } from "@/lib/time";

const TimeSeries = lazy(async () => ({
  default: (await import("@/components/figures/time-series")).TimeSeries,
}));

type Hours = NonNullable<WhatIf["hours"]>;
type QueueHours = Hours["total"];
type Figures = NonNullable<QueueHours["before"]>;

const HOUR_SECONDS = 3600;
const HEIGHT = 150;
const BEFORE = "var(--kw-muted)";
const AFTER = "var(--kw-used)";
/** Charts of this name share one cursor. */
const CURSOR = "hours ahead";

export interface HoursAheadProps {
  hours: Hours;
  /** When the plan was tried: the first hour begins then. */
  since: string | null;
}

export function HoursAhead({ hours, since }: HoursAheadProps) {
  const [chosen, setChosen] = useState("");
  const [only, ...more] = hours.queues;
  // A single queue that the reader sees has no choice beside it: the figures of all would pass for its own.
  const initial = only !== undefined && more.length === 0 ? only : hours.total;
  const queue = hours.queues.find(({ name }) => name === chosen) ?? initial;
  const begin = since === null ? 0 : Date.parse(since) / 1000;
  return (
    <Panel
      title={t`Hours ahead`}
      aside={
        hours.queues.length > 1 && (
          <Select
            size="xs"
            aria-label={t`Queue of the charts`}
            data={[
              { value: "", label: t`All queues` },
              ...hours.queues.map(({ name }) => ({ value: name, label: name })),
            ]}
            value={queue.name}
            allowDeselect={false}
            searchable
            onChange={(name) => setChosen(name ?? "")}
          />
        )
      }
    >
      <Stack gap="md">
        <Text size="sm" c="var(--kw-muted)">
          {hours.unknown === "" ? basisWords(hours) : unknownWords(hours)}
        </Text>
        {hours.unknown === "" && <Charts queue={queue} begin={begin} />}
        {hours.unknown === "" && <QueueTable hours={hours} />}
        {hours.further_queues > 0 && (
          <Text size="sm" c="var(--kw-muted)">
            {plural(hours.further_queues, {
              one: "# further queue, without a larger change, is not listed.",
              other: "# further queues, without larger changes, are not listed.",
            })}
          </Text>
        )}
      </Stack>
    </Panel>
  );
}

function unknownWords({ unknown, ended_runs }: Hours): string {
  switch (unknown) {
    case "NoRunEnded":
      return t`Unknown: only ${plural(ended_runs, { one: "# run has", other: "# runs have" })} ended here, and the lengths of these workloads are not declared.`;
    case "NoMemory":
      return t`Unknown: the forward runs need more memory than a question may take.`;
    case "Error":
      return t`Unknown: the forward runs ended with an error. The studio's log has it.`;
    default:
      return t`Unknown: the forward runs did not reach a whole hour in their time.`;
  }
}

function basisWords({ hours, asked_hours, runs, ended_runs, total }: Hours): string {
  const known = formatCount(total.with_run_times);
  const all = formatCount(total.workloads);
  const cut = hours < asked_hours ? t` The runs reached ${hours} of ${asked_hours} hours in their time.` : "";
  return (
    t`Means of ${runs} forward runs with and without the plan, by run times of ${formatCount(ended_runs)} ended runs; known for ${known} of ${all} workloads. Workloads that are submitted later are not in them.` +
    cut
  );
}

function Charts({ queue, begin }: { queue: QueueHours; begin: number }) {
  const { before, after } = queue;
  if (before === null || after === null) {
    return (
      <Alert color="gray" role="status">
        <Trans>
          Unknown for this queue: run times are known of only {formatCount(queue.with_run_times)} of its{" "}
          {formatCount(queue.workloads)} workloads.
        </Trans>
      </Alert>
    );
  }
  const chart = (title: string, part: (figures: Figures) => (number | null)[], isWait = false) => (
    <Chart title={title} before={part(before)} after={part(after)} begin={begin} isWait={isWait} />
  );
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
      {chart(t`Waiting workloads`, ({ waiting }) => waiting)}
      {chart(t`Device hours`, ({ device_hours }) => device_hours)}
      {chart(t`Ended jobs`, ({ ended }) => ended)}
      {chart(t`Median wait of the workloads that start`, ({ wait_p50 }) => wait_p50, true)}
    </SimpleGrid>
  );
}

interface ChartProps {
  title: string;
  before: (number | null)[];
  after: (number | null)[];
  begin: number;
  isWait: boolean;
}

function Chart({ title, before, after, begin, isWait }: ChartProps) {
  if ([...before, ...after].every((value) => value === null)) return null; // no workload starts
  const times = after.map((_, hour) => begin + (hour + 1) * HOUR_SECONDS);
  return (
    <div>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      <Suspense fallback={<Skeleton height={HEIGHT + 26} />}>
        <TimeSeries
          label={title}
          times={times}
          lines={[
            { label: t`Without the plan`, color: BEFORE, values: before, limit: true },
            { label: t`With the plan`, color: AFTER, values: after },
          ]}
          version={`${title} ${after.join()} ${before.join()}`}
          format={isWait ? formatDuration : formatMean}
          ticks={isWait ? "duration" : "decimal"}
          height={HEIGHT}
          from={begin}
          to={begin + after.length * HOUR_SECONDS}
          cursor={CURSOR}
        />
      </Suspense>
    </div>
  );
}

/** A mean of counts: with one decimal where it is small. */
function formatMean(value: number): string {
  return value >= 100 || Number.isInteger(value) ? formatCount(Math.round(value)) : value.toFixed(1);
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const arrow = (before: string, after: string) => (before === after ? after : `${before} → ${after}`);

function QueueTable({ hours }: { hours: Hours }) {
  const rows = hours.queues.length === 1 ? hours.queues : [hours.total, ...hours.queues];
  return (
    <WideTable>
      <Table fz="sm" verticalSpacing={5} horizontalSpacing="md" layout="auto" aria-label={t`Hours ahead`}>
        <Table.Thead>
          <Table.Tr>
            {[
              t`Queue`,
              t`Ended jobs`,
              t`Device hours`,
              t`Median wait`,
              t`90 % wait at most`,
              t`Waiting at the end`,
            ].map((title) => (
              <Table.Th key={title}>{title}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((queue) => (
            <QueueRow key={queue.name} queue={queue} hours={hours.hours} />
          ))}
        </Table.Tbody>
      </Table>
    </WideTable>
  );
}

function QueueRow({ queue, hours }: { queue: QueueHours; hours: number }) {
  const { name, before, after } = queue;
  const cell = (part: (figures: Figures) => string): ReactNode =>
    before === null || after === null ? "–" : arrow(part(before), part(after));
  return (
    <Table.Tr>
      <Table.Td>{name === "" ? t`All queues` : <ClusterQueueLink name={name} />}</Table.Td>
      <Table.Td>{cell(({ ended }) => formatMean(sum(ended)))}</Table.Td>
      <Table.Td>{cell(({ device_hours }) => formatMean(sum(device_hours)))}</Table.Td>
      <Table.Td>{cell((figures) => waitWords(figures, figures.all_waits_p50, hours))}</Table.Td>
      <Table.Td>{cell((figures) => waitWords(figures, figures.all_waits_p90, hours))}</Table.Td>
      <Table.Td>{cell(({ waiting }) => formatMean(waiting.at(-1) ?? 0))}</Table.Td>
    </Table.Tr>
  );
}

/** A wait; beyond the hours where it is not known, and a dash where nothing waits. */
function waitWords({ started, waiting }: Figures, wait: number | null, hours: number): string {
  if (wait !== null) return formatDuration(wait);
  return sum(started) + (waiting.at(-1) ?? 0) > 0 ? t`beyond ${hours} h` : "–";
}

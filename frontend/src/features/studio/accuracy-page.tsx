/** How true the estimates of starts were: by age of waiting, and by ClusterQueue. */
import { t } from "@lingui/core/macro";
import { SegmentedControl, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { type Accuracy, accuracyQuery } from "@/api/studio/accuracy";
import { Ago } from "@/components/ago";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { formatCount } from "@/lib/quantity";
import { formatDuration } from "@/lib/time";

const DAY_HOURS = 24;

export function AccuracyPage() {
  const [hours, setHours] = useState(DAY_HOURS);
  const found = useQuery(accuracyQuery(useCluster(), hours));
  const renewedAt = found.data?.renewed_at ?? null;
  return (
    <>
      <PageHeader
        title={t`Accuracy of estimated starts`}
        facts={
          <Text fz="sm" c="var(--kw-muted)">
            {t`80 % of the workloads should start within their interval.`}{" "}
            {renewedAt === null ? t`No studio has estimated a start yet.` : t`Last renewed:`}{" "}
            {renewedAt !== null && <Ago time={renewedAt} />}
          </Text>
        }
        actions={
          <SegmentedControl
            size="xs"
            aria-label={t`Period`}
            value={String(hours)}
            onChange={(value) => setHours(Number(value))}
            data={[
              { value: String(DAY_HOURS), label: t`Day` },
              { value: String(7 * DAY_HOURS), label: t`Week` },
              { value: String(30 * DAY_HOURS), label: t`Month` },
            ]}
          />
        }
      />
      <QueryError title={t`The accuracy cannot be shown`} query={found} />
      {found.data !== undefined && (
        <Stack gap="md">
          <Figures
            title={t`By time waited`}
            label={t`Estimated`}
            rows={found.data.stages.map((stage) => [stageWords(stage.stage_seconds), stage])}
          />
          <Figures
            title={t`By ClusterQueue, at submission`}
            label={t`ClusterQueue`}
            rows={found.data.cluster_queues.map((queue) => [queue.cluster_queue, queue])}
          />
        </Stack>
      )}
    </>
  );
}

function stageWords(seconds: number): string {
  return seconds === 0 ? t`at submission` : t`after ${formatDuration(seconds)}`;
}

function seconds(value: number | null): string {
  if (value === null) return "–";
  return value < 0 ? `-${formatDuration(-value)}` : formatDuration(value);
}

interface FiguresProps {
  title: string;
  label: string;
  rows: (readonly [string, Accuracy])[];
}

function Figures({ title, label, rows }: FiguresProps) {
  return (
    <Panel title={title} flush>
      {rows.every(([, { count }]) => count === 0) ? (
        <Text fz="sm" px="md" pb="md">{t`No workload with an estimate has started in this period.`}</Text>
      ) : (
        <WideTable blocks>
          <Table verticalSpacing={5} horizontalSpacing="md" layout="auto" aria-label={title}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{label}</Table.Th>
                <Table.Th ta="right">{t`Starts`}</Table.Th>
                <Table.Th ta="right">{t`Unknown`}</Table.Th>
                <Table.Th ta="right">{t`Within the interval`}</Table.Th>
                <Table.Th ta="right">{t`Median error`}</Table.Th>
                <Table.Th ta="right">{t`Bias`}</Table.Th>
                <Table.Th ta="right">{t`Mean width`}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody className="kw-number">
              {rows.map(([name, figures]) => (
                <FigureRow key={name} name={name} figures={figures} />
              ))}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

function FigureRow({ name, figures }: { name: string; figures: Accuracy }) {
  const { coverage } = figures;
  return (
    <Table.Tr>
      <Table.Td data-wide fw={550}>
        {name}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Starts`}>
        {formatCount(figures.count)}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Unknown`}>
        {formatCount(figures.unknown)}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Within the interval`}>
        {coverage === null ? "–" : `${Math.round(coverage * 100)} %`}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Median error`}>
        {seconds(figures.median_error_seconds)}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Bias`}>
        {seconds(figures.bias_seconds)}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Mean width`}>
        {seconds(figures.mean_width_seconds)}
      </Table.Td>
    </Table.Tr>
  );
}

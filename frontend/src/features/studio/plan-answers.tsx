/** The two answers to a plan: the first effects, then all, with the queues and workloads that would differ. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Loader, Stack, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { isOpen } from "@/api/studio/questions";
import type { Question, WhatIf } from "@/api/types";
import { ErrorState } from "@/components/error-state";
import { EffectsView } from "@/components/manifest/effects-view";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { ClusterQueueLink, KeyedWorkloadLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort, formatCount } from "@/lib/quantity";
import { formatDuration } from "@/lib/time";
import { shortReason } from "@/lib/words/pending-reason";
import { preemptionReason } from "@/lib/words/preemption-reason";
import { HoursAhead } from "./hours-ahead";
import classes from "./what-if.module.css";

type Whole = NonNullable<WhatIf["whole"]>;

export function PlanAnswers({ question }: { question: Question }) {
  const found = question.what_if;
  const part = found?.whole ?? found?.first;
  return (
    <Stack gap="md" aria-busy={isOpen(question)}>
      {question.state === "Failed" && (
        <ErrorState title={t`The studio has no answer`} message={question.message} />
      )}
      {isOpen(question) && (
        <Text size="sm" c="var(--kw-muted)" role="status">
          <Loader size="xs" mr="xs" />
          {progressWords(question)}
        </Text>
      )}
      {part !== undefined && (
        <EffectsView
          effects={part.effects}
          evicted={part.evictions.count - part.effects.preempted.count - part.effects.stopped.count}
          title={found?.whole == null ? t`First effects` : t`Effects until the cycles are idle`}
        />
      )}
      {part !== undefined && part.evictions.count > 0 && <Evictions {...part.evictions} />}
      {found?.whole != null && <WholeAnswer whole={found.whole} />}
      {found?.hours != null && <HoursAhead hours={found.hours} since={question.tried_at} />}
    </Stack>
  );
}

function progressWords({ what_if: found, hours }: Question): string {
  if (found === null) return t`The studio tries the plan …`;
  if (found.whole === null) return t`First effects. The studio tries further cycles …`;
  return t`The studio looks ${hours} hours ahead …`;
}

function WholeAnswer({ whole }: { whole: Whole }) {
  return (
    <>
      <DeviceFigures whole={whole} />
      {whole.queues.length > 0 && <QueueChanges queues={whole.queues} />}
      {whole.waiting.count > 0 && <NewWaits {...whole.waiting} />}
    </>
  );
}

function Figures({ head, children }: { head: readonly string[]; children: ReactNode }) {
  return (
    <WideTable>
      <Table fz="sm" verticalSpacing={5} horizontalSpacing="md" layout="auto">
        <Table.Thead>
          <Table.Tr>
            {head.map((title) => (
              <Table.Th key={title}>{title}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </WideTable>
  );
}

function Evictions({ count, device_seconds, workloads }: WhatIf["first"]["evictions"]) {
  const hours = (device_seconds / 3600).toFixed(1);
  const preempted = workloads.some((lost) => lost.preemptor_cluster_queue !== "");
  const again = workloads.some((lost) => lost.starts_again);
  return (
    <Panel
      title={t`Evicted: ${formatCount(count)}`}
      aside={<Text size="sm">{t`${hours} device hours lost`}</Text>}
      flush
    >
      <Figures
        head={[
          t`Workload`,
          t`Queue`,
          t`Reason`,
          ...(preempted ? [t`By`] : []),
          t`Ran`,
          t`Devices held`,
          ...(again ? [t`Then`] : []),
        ]}
      >
        {workloads.map((lost) => (
          <Table.Tr key={lost.workload}>
            <Table.Td className={classes.evicted}>
              <KeyedWorkloadLink workload={lost.workload}>
                <MiddleEllipsis text={lost.workload} />
              </KeyedWorkloadLink>
            </Table.Td>
            <Table.Td>
              <ClusterQueueLink name={lost.cluster_queue} />
            </Table.Td>
            <Table.Td className={classes.line}>
              {lost.reason === "Ended" ? t`Ended by the plan` : preemptionReason(lost.reason)}
            </Table.Td>
            {preempted && (
              <Table.Td>
                {lost.preemptor_cluster_queue !== "" && <KeyedWorkloadLink workload={lost.preemptor} />}
              </Table.Td>
            )}
            <Table.Td className={classes.line}>{formatDuration(lost.ran_seconds)}</Table.Td>
            <Table.Td>{formatCount(lost.devices)}</Table.Td>
            {again && <Table.Td>{lost.starts_again ? t`Starts again` : ""}</Table.Td>}
          </Table.Tr>
        ))}
      </Figures>
      <Unlisted count={count} listed={workloads.length} />
    </Panel>
  );
}

/** The number of workloads that a list leaves out, because it is long or the reader may not see them. */
function Unlisted({ count, listed }: { count: number; listed: number }) {
  if (count <= listed) return null;
  return (
    <Text size="sm" c="var(--kw-muted)" px="md" py="xs">
      <Trans>
        {formatCount(count - listed)} more are not listed: the list is limited, and names of other tenants'
        workloads are hidden.
      </Trans>
    </Text>
  );
}

const arrow = (before: string, after: string) => (before === after ? after : `${before} → ${after}`);

function DeviceFigures({ whole }: { whole: Whole }) {
  const { devices_before: before, devices: after } = whole;
  if (before.count + after.count === 0) return null;
  const inUse = ({ used, count }: Whole["devices"]) => t`${formatCount(used)} of ${formatCount(count)}`;
  const fragmented = ({ fragmented }: Whole["devices"]) =>
    fragmented === null ? "–" : fragmented.toFixed(1);
  return (
    <Panel title={t`Devices`} flush>
      <Figures head={[t`Figure`, t`Without the plan`, t`With the plan`]}>
        <Table.Tr>
          <Table.Td>{t`In use`}</Table.Td>
          <Table.Td>{inUse(before)}</Table.Td>
          <Table.Td>{inUse(after)}</Table.Td>
        </Table.Tr>
        <Table.Tr>
          <Table.Td>{t`Idle, but too fragmented for typical pods`}</Table.Td>
          <Table.Td>{fragmented(before)}</Table.Td>
          <Table.Td>{fragmented(after)}</Table.Td>
        </Table.Tr>
      </Figures>
    </Panel>
  );
}

function QueueChanges({ queues }: { queues: Whole["queues"] }) {
  const share = (value: number | null) => (value === null ? "∞" : value.toFixed(2));
  return (
    <Panel title={t`Queues`} flush>
      <Figures head={[t`Queue`, t`Pending`, t`With quota`, t`Weighted share`, t`Quota and usage`]}>
        {queues.map((queue) => (
          <Table.Tr key={queue.name}>
            <Table.Td>
              <ClusterQueueLink name={queue.name} />
            </Table.Td>
            <Table.Td>{arrow(formatCount(queue.pending_before), formatCount(queue.pending))}</Table.Td>
            <Table.Td>{arrow(formatCount(queue.reserving_before), formatCount(queue.reserving))}</Table.Td>
            <Table.Td>{arrow(share(queue.share_before), share(queue.share))}</Table.Td>
            <Table.Td>
              {queue.usage.map(({ flavor, resource, ...row }) => (
                <div key={`${flavor} ${resource}`}>
                  {t`${resource} in ${flavor}: ${arrow(
                    formatAmountShort(resource, row.used_before),
                    formatAmountShort(resource, row.used),
                  )} used of ${arrow(
                    formatAmountShort(resource, row.nominal_before),
                    formatAmountShort(resource, row.nominal),
                  )}`}
                </div>
              ))}
            </Table.Td>
          </Table.Tr>
        ))}
      </Figures>
    </Panel>
  );
}

function NewWaits({ count, workloads }: Whole["waiting"]) {
  return (
    <Panel title={t`Newly waiting, or waiting for another reason: ${formatCount(count)}`} flush>
      <Figures head={[t`Workload`, t`Queue`, t`Reason`, t`Before`]}>
        {workloads.map((wait) => (
          <Table.Tr key={wait.workload}>
            <Table.Td>
              <KeyedWorkloadLink workload={wait.workload} />
            </Table.Td>
            <Table.Td>
              <ClusterQueueLink name={wait.cluster_queue} />
            </Table.Td>
            <Table.Td title={wait.message}>{shortReason(wait.reason)}</Table.Td>
            <Table.Td>
              {wait.reason_before === "" ? t`Would not wait` : shortReason(wait.reason_before)}
            </Table.Td>
          </Table.Tr>
        ))}
      </Figures>
      <Unlisted count={count} listed={workloads.length} />
    </Panel>
  );
}

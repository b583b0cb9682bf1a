/** The pods of a workload as the cluster shows them, the slices that they hold and use, and their logs. */

import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { Button, Group, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster, useLive } from "@/api/cluster";
import type { Pod, WorkloadDetail } from "@/api/types";
import { workloadPodsQuery, workloadSamplesQuery } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { Meter } from "@/components/figures/meter";
import { DeviceLink, NodeLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { formatMib, formatShare } from "@/lib/quantity";
import { tenantColor } from "@/lib/tenant-color";
import { formatAge } from "@/lib/time";
import classes from "../workloads.module.css";
import { PodLog } from "./pod-log";
import { type PodRow, podRows, type SliceInUse } from "./pod-rows";

export function WhereItRuns({ workload }: { workload: WorkloadDetail }) {
  const cluster = useCluster();
  const pods = useQuery(workloadPodsQuery(cluster, workload));
  const holds = workload.devices.length > 0;
  const samples = useQuery({ ...workloadSamplesQuery(cluster, workload), enabled: holds });
  const [shown, setShown] = useState<Pod | null>(null);
  const rows = podRows({
    held: workload.devices,
    pods: pods.data?.results ?? [],
    samples: samples.data?.results ?? [],
    complete: pods.data === undefined ? pods.error !== null : pods.data.next == null,
  });
  if (rows.length === 0 && pods.error === null) return null;
  const someExist = (pods.data?.results.length ?? 0) > 0;
  const isReported = rows.some(({ slices }) => slices.some(({ use }) => use !== null));
  return (
    <Panel title={t`Where it runs`} flush>
      <QueryError title={t`The pods cannot be shown`} query={pods} />
      <WideTable>
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Node and device</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Memory</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Cores</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Rows
                key={row.key}
                row={row}
                color={tenantColor(workload.namespace)}
                absent={someExist ? t`not created yet` : "–"}
                isReported={isReported}
                onLog={setShown}
              />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
      {pods.data?.next != null && (
        <Text fz="sm" c="var(--kw-muted)" p="md">
          <Trans>Only the first {pods.data.results.length} pods are shown.</Trans>
        </Text>
      )}
      {holds && !samples.isPending && !isReported && (
        <Text fz="xs" c="var(--kw-muted)" px="md" py={8}>
          {samples.error === null
            ? t`No monitor has reported its containers recently.`
            : samples.error.message}
        </Text>
      )}
      {shown !== null && <PodLog workload={workload} pod={shown} onClose={() => setShown(null)} />}
    </Panel>
  );
}

interface RowsProps {
  row: PodRow;
  color: string;
  /** In place of the state of a pod that the cluster does not show. */
  absent: string;
  /** Whether a monitor reports some container of the workload, so that one without a report is told apart. */
  isReported: boolean;
  onLog: (pod: Pod) => void;
}

/** A line for the pod, and one for each slice that it holds. */
function Rows({ row, color, absent, isReported, onLog }: RowsProps) {
  const { pod, podSet, replica, node, slices } = row;
  return (
    <>
      <Table.Tr className={classes.groupRow}>
        <Table.Td colSpan={3}>
          <Group gap="xs" wrap="nowrap" justify="space-between" align="flex-start">
            <span className={classes.groupHead}>
              <b style={{ overflowWrap: "anywhere" }}>{pod === null ? `${podSet}-${replica}` : pod.name}</b>
              {pod !== null && (
                <span className={classes.second}>
                  {podSet} {replica}
                </span>
              )}
              {pod === null ? <span className={classes.second}>{absent}</span> : <State pod={pod} />}
              {slices.length === 0 && node !== "" && <NodeLink name={node} />}
            </span>
            {pod !== null && (
              <Button
                variant="default"
                size="compact-xs"
                style={{ flexShrink: 0 }}
                onClick={() => onLog(pod)}
                aria-label={t`Log of ${pod.name}`}
              >
                <Trans>Log</Trans>
              </Button>
            )}
          </Group>
          {pod !== null && pod.message !== "" && (
            <Text fz="xs" c="var(--kw-muted)" style={{ overflowWrap: "anywhere" }}>
              {pod.message}
            </Text>
          )}
        </Table.Td>
      </Table.Tr>
      {slices.map((slice) => (
        <Table.Tr key={`${slice.container} ${slice.uuid}`}>
          <Table.Td>
            {node !== "" && <NodeLink name={node} />} <Device node={node} slice={slice} />
          </Table.Td>
          <Table.Td miw={110}>
            <Memory slice={slice} color={color} isReported={isReported} />
          </Table.Td>
          <Table.Td miw={90}>
            <Cores slice={slice} color={color} isReported={isReported} />
          </Table.Td>
        </Table.Tr>
      ))}
    </>
  );
}

function State({ pod }: { pod: Pod }) {
  return (
    <>
      <Text span fz="sm" c={phaseColor(pod)}>
        {phaseWords(pod)}
      </Text>
      {pod.started_at !== null && (
        <span className={classes.second}>
          <Trans>
            started <Ago time={pod.started_at} />
          </Trans>
        </span>
      )}
      {pod.restarts > 0 && (
        <Text span fz="xs" c="var(--kw-over)">
          <Plural value={pod.restarts} one="# restart" other="# restarts" />
        </Text>
      )}
    </>
  );
}

/** The phase, with the reason where there is one. */
function phaseWords(pod: Pod): string {
  const words = pod.terminating
    ? t`Terminating`
    : pod.phase === "Running" && !pod.ready
      ? t`Running, not ready`
      : pod.phase;
  return pod.reason === "" || pod.reason === "Completed" ? words : `${words}: ${pod.reason}`;
}

function phaseColor(pod: Pod): string {
  if (pod.phase === "Failed" || pod.reason === "Unschedulable") return "var(--kw-over)";
  return pod.ready ? "var(--kw-good)" : "inherit";
}

function Device({ node, slice }: { node: string; slice: SliceInUse }) {
  const index = useLive((live) => live.data?.devices[slice.uuid]?.index);
  return (
    <>
      <DeviceLink
        node={node}
        uuid={slice.uuid}
        label={index === undefined ? slice.uuid.slice(0, 12) : t`device ${index}`}
      />
      <Text fz="xs" c="var(--kw-muted)" title={slice.uuid} truncate maw="min(220px, 34vw)">
        {slice.container} · {slice.uuid}
      </Text>
    </>
  );
}

interface UseProps {
  slice: SliceInUse;
  color: string;
  isReported: boolean;
}

/** The memory that it holds, as a part of the device's, and how much of that its container uses. */
function Memory({ slice, color, isReported }: UseProps) {
  const total = useLive((live) => live.data?.devices[slice.uuid]?.memory_mib);
  const held = formatMib(slice.memoryMib);
  const used = slice.use?.memory_used_mib ?? null;
  return (
    <>
      {held}
      {total !== undefined && (
        <Meter
          height={5}
          label={t`${held} of ${formatMib(total)}`}
          total={total}
          segments={[
            {
              value: used === null ? slice.memoryMib : used,
              color,
              label: used === null ? held : formatMib(used),
            },
            {
              value: used === null ? 0 : Math.max(0, slice.memoryMib - used),
              color,
              label: held,
              striped: true,
            },
          ]}
        />
      )}
      <Use isReported={isReported}>
        {used === null ? null : t`${formatMib(used)} used (${formatShare(used, slice.memoryMib)})`}
      </Use>
    </>
  );
}

/** The share of the device's cores that it may use, and how busy its container keeps them. */
function Cores({ slice, color, isReported }: UseProps) {
  const total = useLive((live) => live.data?.devices[slice.uuid]?.cores_percent) ?? 100;
  const busy = slice.use?.utilization_percent ?? null;
  const idle = slice.use?.last_kernel_seconds ?? null;
  const held = `${slice.coresPercent} %`;
  return (
    <>
      {slice.coresPercent === 0 ? t`not limited` : held}
      {slice.coresPercent > 0 && (
        <Meter
          height={5}
          label={t`${slice.coresPercent} % of the device's cores`}
          total={total}
          segments={[{ value: slice.coresPercent, color, label: held }]}
        />
      )}
      <Use isReported={isReported}>{busy === null ? null : t`${Math.round(busy)} % busy`}</Use>
      {idle !== null && (
        <Text fz="xs" c="var(--kw-muted)">
          <Trans>last kernel {formatAge(idle)} ago</Trans>
        </Text>
      )}
    </>
  );
}

/** The words for a measured figure; without a monitor it is called absent, never shown as 0. */
function Use({ isReported, children }: { isReported: boolean; children: string | null }) {
  if (children === null && !isReported) return null;
  return (
    <Text fz="xs" c="var(--kw-muted)">
      {children ?? t`use not reported`}
    </Text>
  );
}

/** Its pods as the cluster shows them: where they run, why they do not, and what they print. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import type { Pod, WorkloadDetail } from "@/api/types";
import { workloadPodsQuery } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { PodLog } from "./pod-log";

export function Pods({ workload }: { workload: WorkloadDetail }) {
  const pods = useQuery(workloadPodsQuery(useCluster(), workload));
  const [shown, setShown] = useState<Pod | null>(null);
  if (pods.data === undefined && pods.error === null) return null;
  if (pods.error === null && pods.data.results.length === 0) return null;
  return (
    <Panel title={t`Pods`} flush>
      <QueryError title={t`The pods cannot be shown`} query={pods} />
      <WideTable>
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Pod</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Phase</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Node and devices</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Restarts</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Started</Trans>
              </Table.Th>
              <Table.Th />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {pods.data?.results.map((pod) => (
              <Row key={pod.uid} pod={pod} onLog={() => setShown(pod)} />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
      {pods.data?.next != null && (
        <Text fz="sm" c="var(--kw-muted)" p="md">
          <Trans>Only the first {pods.data.results.length} pods are shown.</Trans>
        </Text>
      )}
      {shown !== null && <PodLog workload={workload} pod={shown} onClose={() => setShown(null)} />}
    </Panel>
  );
}

function Row({ pod, onLog }: { pod: Pod; onLog: () => void }) {
  return (
    <Table.Tr>
      <Table.Td>
        {pod.name}
        <Text fz="xs" c="var(--kw-muted)">
          {pod.pod_set} {pod.replica}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text fz="sm" c={phaseColor(pod)}>
          {phaseWords(pod)}
        </Text>
        {pod.message !== "" && (
          <Text fz="xs" c="var(--kw-muted)" style={{ overflowWrap: "anywhere" }}>
            {pod.message}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        {pod.node === "" ? "–" : pod.node}
        {pod.devices.map((device) => (
          <Text key={`${device.uuid} ${device.container}`} fz="xs" c="var(--kw-muted)" title={device.uuid}>
            <Trans>
              {device.memory_mib} MiB, {device.cores_percent} % of {device.uuid.slice(0, 12)}
            </Trans>
          </Text>
        ))}
      </Table.Td>
      <Table.Td ta="right" className="kw-number">
        {pod.restarts}
      </Table.Td>
      <Table.Td>{pod.started_at === null ? "–" : <Ago time={pod.started_at} />}</Table.Td>
      <Table.Td ta="right">
        <Button variant="default" size="compact-xs" onClick={onLog} aria-label={t`Log of ${pod.name}`}>
          <Trans>Log</Trans>
        </Button>
      </Table.Td>
    </Table.Tr>
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

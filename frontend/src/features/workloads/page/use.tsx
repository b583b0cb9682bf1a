/** What its containers really use, beside what they hold. What no monitor reports is said to be absent, never shown as 0. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import type { WorkloadDetail } from "@/api/types";
import { workloadSamplesQuery } from "@/api/workloads";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatMib, formatShare } from "@/lib/quantity";
import { formatAge } from "@/lib/time";
import { type ContainerUse, latestUse } from "./container-use";

export function Use({ workload }: { workload: WorkloadDetail }) {
  const samples = useQuery({
    ...workloadSamplesQuery(useCluster(), workload),
    enabled: workload.devices.length > 0,
  });
  if (workload.devices.length === 0 || samples.isPending) return null;
  const rows = latestUse(samples.data?.results ?? [], workload.devices);
  if (rows.length === 0) {
    return (
      <Panel title={t`Use by its containers`}>
        <Text fz="sm" c="var(--kw-muted)">
          {samples.error === null ? t`No monitor has reported its containers lately.` : samples.error.message}
        </Text>
      </Panel>
    );
  }
  return (
    <Panel title={t`Use by its containers`} flush>
      <WideTable>
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Pod and container</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Memory</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Cores busy</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Last kernel</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Row key={`${row.pod_name} ${row.container} ${row.uuid}`} use={row} />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

function Row({ use }: { use: ContainerUse }) {
  return (
    <Table.Tr>
      <Table.Td>
        {use.pod_name}
        <Text fz="xs" c="var(--kw-muted)" title={use.uuid}>
          {use.container}
        </Text>
      </Table.Td>
      <Table.Td ta="right" className="kw-number">
        {use.memory_used_mib === null ? t`not reported` : formatMib(use.memory_used_mib)}
        {use.memory_used_mib !== null && use.heldMib !== null && (
          <Text fz="xs" c="var(--kw-muted)">
            <Trans>
              {formatShare(use.memory_used_mib, use.heldMib)} of {formatMib(use.heldMib)}
            </Trans>
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right" className="kw-number">
        {use.utilization_percent === null ? t`not reported` : `${Math.round(use.utilization_percent)} %`}
      </Table.Td>
      <Table.Td ta="right" className="kw-number">
        {use.last_kernel_seconds === null ? t`not reported` : t`${formatAge(use.last_kernel_seconds)} ago`}
      </Table.Td>
    </Table.Tr>
  );
}

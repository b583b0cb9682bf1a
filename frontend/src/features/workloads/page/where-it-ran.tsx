/** The devices of a workload that no longer holds any: from the decision log, which outlives it. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { lastPlacementQuery } from "@/api/decisions";
import type { WorkloadReference } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { DeviceLink, NodeLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatMib } from "@/lib/quantity";

export function WhereItRan(reference: WorkloadReference) {
  const placement = useQuery(lastPlacementQuery(useCluster(), reference)).data;
  if (placement === undefined || placement === null || placement.devices.length === 0) return null;
  return (
    <Panel
      title={t`Where it last ran`}
      aside={
        <Text fz="xs" c="var(--kw-muted)">
          <Trans>
            admitted <Ago time={placement.at} />
          </Trans>
        </Text>
      }
      flush
    >
      <WideTable>
        <Table fz="sm" verticalSpacing={5} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Node</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Device</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Memory</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Cores</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {placement.devices.map(({ node, uuid, memoryMib, coresPercent }, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: two containers may hold the same of one device
              <Table.Tr key={place}>
                <Table.Td>
                  <NodeLink name={node} />
                </Table.Td>
                <Table.Td>
                  <DeviceLink node={node} uuid={uuid} label={uuid} />
                </Table.Td>
                <Table.Td ta="right">{formatMib(memoryMib)}</Table.Td>
                <Table.Td ta="right">{coresPercent === 0 ? t`not limited` : `${coresPercent} %`}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

/** Differences between the cluster's devices and the decisions; nothing is shown while they agree. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster, useIsSeveral } from "@/api/cluster";
import { driftQuery } from "@/api/devices";
import { BadgeDot } from "@/components/badge-dot";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";

export function DriftPanel() {
  const several = useIsSeveral();
  const drift = useQuery(driftQuery(useCluster()));
  const rows = drift.data?.results ?? [];
  if (drift.error !== null) {
    return (
      <Text fz="sm" c="var(--kw-over)" role="alert">
        <Trans>Drift from the decisions is unknown: {drift.error.message}</Trans>
      </Text>
    );
  }
  if (rows.length === 0) return null;
  return (
    <Panel title={t`Drift: the cluster differs from the decisions`} w="100%" flush>
      <WideTable>
        <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={`${row.cluster} ${row.kind} ${row.node} ${row.device} ${row.message}`}>
                {several && <Table.Td>{row.cluster}</Table.Td>}
                <Table.Td>
                  <BadgeDot label={row.kind} color="orange" />
                </Table.Td>
                <Table.Td>
                  {row.node}
                  <Text fz="xs" c="var(--kw-muted)">
                    {row.device}
                  </Text>
                </Table.Td>
                <Table.Td>
                  {row.message}
                  {row.holders.length > 0 && (
                    <Text fz="xs" c="var(--kw-muted)">
                      <Trans>held by {row.holders.join(", ")}</Trans>
                    </Text>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

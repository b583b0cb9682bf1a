/** The free devices that the filters show, by type: whole devices and pieces. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table } from "@mantine/core";
import { useMemo } from "react";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatCount, formatMib, formatShare } from "@/lib/quantity";
import { deviceModel } from "@/lib/words/device-words";
import { type DeviceEntry, headroom } from "./summary";

export function HeadroomTable({ entries }: { entries: DeviceEntry[] }) {
  const rows = useMemo(() => headroom(entries), [entries]);
  if (rows.length === 0) return null;
  return (
    <Panel title={t`Free capacity by device type`} flush w="100%">
      <WideTable data-live>
        <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Type</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Devices</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Wholly free</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Free memory</Trans>
              </Table.Th>
              <Table.Th ta="right" title={t`Free memory on shared devices: fits slices only`}>
                <Trans>of which on shared devices</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.type}>
                <Table.Td>{deviceModel(row.type)}</Table.Td>
                <Table.Td ta="right">{formatCount(row.devices)}</Table.Td>
                <Table.Td ta="right">{formatCount(row.wholeFree)}</Table.Td>
                <Table.Td ta="right">{formatMib(row.freeMib)}</Table.Td>
                <Table.Td ta="right">
                  {formatMib(row.freeOnSharedMib)} ({formatShare(row.freeOnSharedMib, row.freeMib)})
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

/** The quotas of a flavor by queue, and the used part of each. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table } from "@mantine/core";
import { useLive } from "@/api/cluster";
import { NoneOf } from "@/components/key-values";
import { ClusterQueueLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort } from "@/lib/quantity";
import { QuotaBar } from "./quota-bar";

export function FlavorQuotas({ flavor }: { flavor: string }) {
  const queues = useLive((live) => live.data?.cluster_queues);
  const rows = Object.entries(queues ?? {})
    .flatMap(([queue, { usage }]) =>
      usage.filter((quota) => quota.flavor === flavor).map((quota) => ({ queue, quota })),
    )
    .sort((a, b) => a.quota.resource.localeCompare(b.quota.resource) || a.queue.localeCompare(b.queue));
  return (
    <Panel title={t`Quota by queue`} flush>
      {rows.length === 0 ? (
        <NoneOf>
          <Trans>No queue that you can see has quota in this flavor.</Trans>
        </NoneOf>
      ) : (
        <WideTable whole blocks>
          <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>
                  <Trans>Resource</Trans>
                </Table.Th>
                <Table.Th>
                  <Trans>ClusterQueue</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Nominal</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Used</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Borrowed</Trans>
                </Table.Th>
                <Table.Th miw={140} w="24%" />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody data-live>
              {rows.map(({ queue, quota }, place) => (
                <Table.Tr key={`${quota.resource} ${queue}`}>
                  <Table.Td data-wide>
                    {rows[place - 1]?.quota.resource === quota.resource ? "" : quota.resource}
                  </Table.Td>
                  <Table.Td data-wide>
                    <ClusterQueueLink name={queue} />
                  </Table.Td>
                  {(
                    [
                      [t`Nominal`, quota.nominal],
                      [t`Used`, quota.used],
                      [t`Borrowed`, quota.borrowed],
                    ] as const
                  ).map(([label, amount]) => (
                    <Table.Td key={label} ta="right" data-label={label}>
                      {formatAmountShort(quota.resource, amount)}
                    </Table.Td>
                  ))}
                  <Table.Td data-wide>
                    <QuotaBar quota={quota} height={10} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

/** The quotas of a ClusterQueue as a table. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { ClusterQueue, LiveQuota } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { FlavorLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort, parseAmount } from "@/lib/quantity";
import { following } from "./quota";
import { QuotaBar } from "./quota-bar";

export function Quotas({ queue, usage }: { queue: ClusterQueue; usage: LiveQuota[] }) {
  return (
    <Panel title={t`Quotas`} flush>
      <QuotaTable queue={queue} usage={usage} />
    </Panel>
  );
}

function QuotaTable({ queue, usage }: { queue: ClusterQueue; usage: LiveQuota[] }) {
  const rows = queue.resource_groups.flatMap((group) =>
    group.flavors.flatMap((flavor) =>
      flavor.resources.map((resource) => ({ flavor: flavor.name, resource })),
    ),
  );
  if (rows.length === 0) {
    return (
      <EmptyState icon="queues" title={t`No quota`}>
        <Trans>Without resource groups this queue admits no workload that requests resources.</Trans>
      </EmptyState>
    );
  }
  return (
    <WideTable whole blocks>
      <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>
              <Trans>Flavor</Trans>
            </Table.Th>
            <Table.Th>
              <Trans>Resource</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Nominal</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Borrowing limit</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Lending limit</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Used</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Borrowed</Trans>
            </Table.Th>
            <Table.Th miw={160} w="26%">
              <Trans>Use</Trans>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ flavor, resource }) => {
            const live = usage.find((quota) => quota.flavor === flavor && quota.resource === resource.name);
            return (
              <Table.Tr key={`${flavor} ${resource.name}`}>
                <Table.Td data-label={t`Flavor`}>
                  <FlavorLink name={flavor} />
                </Table.Td>
                <Table.Td data-label={t`Resource`}>{resource.name}</Table.Td>
                <QuantityCell label={t`Nominal`} resource={resource.name} quantity={resource.nominal_quota}>
                  <Following queue={queue} flavor={flavor} resource={resource.name} />
                </QuantityCell>
                <QuantityCell
                  label={t`Borrowing limit`}
                  resource={resource.name}
                  quantity={resource.borrowing_limit}
                />
                <QuantityCell
                  label={t`Lending limit`}
                  resource={resource.name}
                  quantity={resource.lending_limit}
                />
                <Table.Td ta="right" data-live data-label={t`Used`}>
                  {live === undefined ? "–" : formatAmountShort(resource.name, live.used)}
                </Table.Td>
                <Table.Td ta="right" data-live data-label={t`Borrowed`}>
                  <Text
                    span
                    fz="inherit"
                    c={live !== undefined && live.borrowed > 0 ? "var(--kw-borrowed-text)" : "inherit"}
                  >
                    {live === undefined ? "–" : formatAmountShort(resource.name, live.borrowed)}
                  </Text>
                </Table.Td>
                <Table.Td data-live data-wide>
                  {live !== undefined && <QuotaBar quota={live} height={10} />}
                </Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </WideTable>
  );
}

/** That the quota is computed from the nodes of its flavor, and how. */
function Following({ queue, flavor, resource }: { queue: ClusterQueue; flavor: string; resource: string }) {
  const words = following(queue, flavor, resource);
  return words === null ? null : (
    <Text
      fz="xs"
      c="var(--kw-muted)"
      title={t`Computed from the capacity that unmanaged pods leave on the flavor's nodes`}
    >
      {words}
    </Text>
  );
}

interface QuantityCellProps {
  label: string;
  resource: string;
  quantity: string | null;
  children?: ReactNode;
}

/** A quantity for people; exactly as written in the tooltip. */
function QuantityCell({ label, resource, quantity, children }: QuantityCellProps) {
  return (
    <Table.Td ta="right" title={quantity ?? t`no limit`} data-label={label}>
      {quantity === null ? t`none` : formatAmountShort(resource, parseAmount(resource, quantity))}
      {children}
    </Table.Td>
  );
}

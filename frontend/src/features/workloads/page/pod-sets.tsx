/** The requests of each pod set, beside its assigned flavors and devices. */

import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { Badge, Group, Table, Text } from "@mantine/core";
import type { PodSet } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { FlavorLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort, parseAmount } from "@/lib/quantity";

export function PodSets({ podSets }: { podSets: PodSet[] }) {
  return (
    <Panel title={t`Pod sets: requested and assigned`} flush>
      {podSets.length === 0 && <EmptyState icon="workloads" title={t`It has no pod sets`} />}
      {podSets.map((podSet) => (
        <PodSetTable key={podSet.name} podSet={podSet} />
      ))}
    </Panel>
  );
}

function PodSetTable({ podSet }: { podSet: PodSet }) {
  const resources = [...new Set([...Object.keys(podSet.requests), ...Object.keys(podSet.flavors)])].sort();
  const { admitted_count: admitted, count } = podSet;
  // One flavor is said once: a column of it would break its name into pieces. A resource that is counted in no flavor,
  // such as the memory of each GPU, which counts in total, holds no quota, as its last column says.
  const flavors = new Set(Object.values(podSet.flavors));
  const [only] = flavors;
  const differ = flavors.size > 1;
  return (
    <WideTable>
      <Group px="md" pt="sm" pb={4} gap="xs">
        <Text fw={600} fz="sm">
          {podSet.name}
        </Text>
        <Text fz="sm" c="var(--kw-muted)" className="kw-number">
          <Plural value={count} one="# pod" other="# pods" />
          {podSet.min_count !== null && t`, at least ${podSet.min_count}`}
          {admitted !== null && admitted !== count && t`, ${admitted} admitted`}
        </Text>
        {only !== undefined && !differ && (
          <Text fz="sm" c="var(--kw-muted)">
            <Trans>
              in flavor <FlavorLink name={only} inText />
            </Trans>
          </Text>
        )}
        {Object.entries(podSet.node_selector).map(([label, value]) => (
          <Badge key={label} variant="default" tt="none" radius="sm">
            {label}={value}
          </Badge>
        ))}
      </Group>
      <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>
              <Trans>Resource</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Requests per pod</Trans>
            </Table.Th>
            {differ && (
              <Table.Th>
                <Trans>Assigned flavor</Trans>
              </Table.Th>
            )}
            <Table.Th ta="right">
              <Trans>Quota held</Trans>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {resources.map((resource) => (
            <Table.Tr key={resource}>
              <Table.Td>{resource}</Table.Td>
              <QuantityCell resource={resource} quantity={podSet.requests[resource]} />
              {differ && <Table.Td>{podSet.flavors[resource] ?? "–"}</Table.Td>}
              <QuantityCell resource={resource} quantity={podSet.resource_usage[resource]} />
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </WideTable>
  );
}

/** A quantity for people; exactly as written in the tooltip. */
function QuantityCell({ resource, quantity }: { resource: string; quantity: string | undefined }) {
  return (
    <Table.Td ta="right" title={quantity}>
      {quantity === undefined ? "–" : formatAmountShort(resource, parseAmount(resource, quantity))}
    </Table.Td>
  );
}

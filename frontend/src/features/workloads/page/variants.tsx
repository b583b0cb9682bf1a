/** The variants of a workload, each of which pursues one flavor: where it runs, and why the others wait. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import type { WorkloadDetail } from "@/api/types";
import { TextLink } from "@/components/link";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { WorkloadStateBadge } from "../list/workload-columns";

export function Variants({ workload }: { workload: WorkloadDetail }) {
  if (workload.variants.length === 0) return null;
  return (
    <Panel title={t`Flavors pursued at once`} flush>
      <WideTable>
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Flavor</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>State</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Why</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {workload.variants.map((variant) => (
              <Table.Tr key={variant.name}>
                <Table.Td fw={550}>
                  <TextLink
                    to="/workloads/$namespace/$name"
                    params={{ namespace: workload.namespace, name: variant.name }}
                    fz="inherit"
                  >
                    {variant.flavor}
                  </TextLink>
                </Table.Td>
                <Table.Td>
                  <WorkloadStateBadge workload={variant} />
                </Table.Td>
                <Table.Td>
                  <Text fz="xs" c="var(--kw-muted)" style={{ overflowWrap: "anywhere" }}>
                    {variant.message}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

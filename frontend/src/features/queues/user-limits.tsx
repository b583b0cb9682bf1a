/** The amounts that each user and each group holds of a ClusterQueue and of the cohorts above it, beside its limits. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { userLimitsQuery } from "@/api/queues";
import type { UserHolding } from "@/api/types";
import { Meter } from "@/components/figures/meter";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountOf, formatCount } from "@/lib/quantity";

interface LimitLine {
  name: string;
  held: number;
  limit: number;
  text: string;
}

/** Empty where neither the queue nor a cohort above it limits users or groups. */
export function UserLimits({ clusterQueue }: { clusterQueue: string }) {
  const holdings = useQuery(userLimitsQuery(useCluster(), clusterQueue));
  const rows = holdings.data?.results ?? [];
  if (rows.length === 0 && holdings.error === null) return null;
  return (
    <Panel title={t`Limits by user and group`} flush>
      <QueryError title={t`This list cannot be shown`} query={holdings} />
      <WideTable whole>
        <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>User or group</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Held of the limit</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={`${row.level} ${row.group} ${row.user}`}>
                <Table.Td>
                  <Text fz="sm" fw={550}>
                    {holderOf(row)}
                  </Text>
                  <Text fz="xs" c="var(--kw-muted)">
                    {row.level}
                  </Text>
                </Table.Td>
                <Table.Td>
                  {limitLines(row).map((line) => (
                    <HeldOfLimit key={line.name} line={line} />
                  ))}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

/** The user, or the group, of which `*` is all that no limit names. */
function holderOf({ user, group }: UserHolding): string {
  if (group === "*") return t`all other groups`;
  if (group !== "") return t`group ${group}`;
  return user === "" ? t`not known` : user;
}

/** One line for each thing that is limited, the number of workloads first. */
function limitLines({ workloads, max_workloads: most, resources }: UserHolding): LimitLine[] {
  const counted =
    most === null
      ? []
      : [
          {
            name: t`workloads`,
            held: workloads,
            limit: most,
            text: `${formatCount(workloads)} / ${formatCount(most)}`,
          },
        ];
  return [
    ...counted,
    ...resources.map(({ resource, held, limit }) => ({
      name: resource,
      held,
      limit,
      text: formatAmountOf(resource, held, limit),
    })),
  ];
}

function HeldOfLimit({ line: { name, held, limit, text } }: { line: LimitLine }) {
  return (
    <div style={{ minWidth: 140 }}>
      <Text fz="xs" span>
        {name} <span className="kw-number">{text}</span>
      </Text>
      <Meter
        height={5}
        label={`${name}: ${text}`}
        total={limit}
        segments={[{ value: held, color: "var(--kw-used)", label: t`held` }]}
      />
    </div>
  );
}

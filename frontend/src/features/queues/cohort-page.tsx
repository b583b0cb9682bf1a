/** One cohort: what all queues below it have together, and which cohorts and queues those are. */

import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, SimpleGrid, Skeleton, Stack, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { yamlQuery } from "@/api/manifests";
import { cohortQuery } from "@/api/queues";
import type { Cohort, LiveCohort } from "@/api/types";
import { BackLink } from "@/components/back-link";
import { BadgeDot } from "@/components/badge-dot";
import { EmptyState } from "@/components/empty-state";
import { Meter } from "@/components/figures/meter";
import { Stat } from "@/components/figures/stat";
import { NoneOf } from "@/components/key-values";
import { YamlPanel } from "@/components/manifest/yaml-panel";
import { ClusterQueueLink, CohortLink, FlavorLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort, formatCount, formatShare, parseAmount } from "@/lib/quantity";
import { formatWeightedShare, sortQuotas } from "./quota";
import { type CohortRow, quotaKey, type TreeRow, treeRows } from "./tree/cohort-tree";

export interface CohortPageProps {
  name: string;
  /** The charts of the cohort. */
  history: ReactNode;
  /** The buttons by which it is changed, or declared where it is only named. */
  actions: (isDeclared: boolean) => ReactNode;
}

export function CohortPage({ name, history, actions }: CohortPageProps) {
  const cluster = useCluster();
  const declared = useQuery(cohortQuery(cluster, name));
  const data = useLive((live) => live.data);
  const rows = useMemo(() => (data === null ? null : below(treeRows(data, new Set()), name)), [data, name]);
  return (
    <>
      <PageHeader
        title={name}
        trail={
          <BackLink to="/queues">
            <Trans>Queues</Trans>
          </BackLink>
        }
        facts={<Facts cohort={declared.data} live={data?.cohorts[name]} />}
        actions={declared.data !== undefined && actions(declared.data !== null)}
      />
      {rows === null && <Skeleton height={320} />}
      {rows?.head === undefined && rows !== null && (
        <Panel>
          <EmptyState icon="queues" title={t`No such cohort`}>
            <Trans>
              A cohort exists when a ClusterQueue or another cohort refers to it, or when it is declared.
            </Trans>
          </EmptyState>
        </Panel>
      )}
      {rows?.head !== undefined && (
        <Stack gap="md">
          <Numbers row={rows.head} />
          <Quotas row={rows.head} declared={declared.data ?? null} />
          <Members rows={rows.members} />
          {history}
          {declared.data != null && <YamlPanel query={yamlQuery(cluster, { kind: "Cohort", name })} />}
        </Stack>
      )}
    </>
  );
}

/** The cohort's own row and those of what is directly in it. */
function below(rows: TreeRow[], name: string): { head: CohortRow | undefined; members: TreeRow[] } {
  const place = rows.findIndex((row) => row.kind === "cohort" && row.name === name);
  const head = rows[place];
  if (head?.kind !== "cohort") return { head: undefined, members: [] };
  const rest = rows.slice(place + 1);
  const end = rest.findIndex((row) => row.depth <= head.depth);
  const inside = end === -1 ? rest : rest.slice(0, end);
  return { head, members: inside.filter((row) => row.depth === head.depth + 1) };
}

function Facts({ cohort, live }: { cohort: Cohort | null | undefined; live: LiveCohort | undefined }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      {cohort === null && (
        <BadgeDot
          label={t`Not declared`}
          color="gray"
          hint={t`Queues refer to this cohort; it has no quota of its own.`}
        />
      )}
      {live !== undefined && live.parent !== "" && (
        <span>
          <Trans>
            in cohort <CohortLink name={live.parent} inText />
          </Trans>
        </span>
      )}
      {cohort != null && (
        <span>
          <Trans>fair weight {cohort.fair_weight}</Trans>
        </span>
      )}
      {cohort != null && (cohort.sharing_policy ?? "") !== "" && (
        <span title={`kueueweb.io/sharing-policy: ${cohort.sharing_policy}`}>
          <Trans>its queues share by {cohort.sharing_policy}</Trans>
        </span>
      )}
    </Group>
  );
}

function Numbers({ row }: { row: CohortRow }) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="md">
      <Stat label={t`ClusterQueues`} value={formatCount(row.queues)} />
      <Stat label={t`Pending`} value={formatCount(row.pending)} />
      <Stat label={t`Admitted`} value={formatCount(row.admitted)} />
      <Stat
        label={t`Weighted share`}
        value={row.cohort === null ? "–" : `${formatWeightedShare(row.cohort.weighted_share)} ‰`}
        note={row.cohort?.parent === "" ? t`borrows nothing` : t`of what the parent can lend`}
      />
    </SimpleGrid>
  );
}

/** The quota of the cohort itself, before that of its queues. */
function ownQuotas(cohort: Cohort | null): Map<string, number> {
  const found = new Map<string, number>();
  for (const group of cohort?.resource_groups ?? [])
    for (const flavor of group.flavors)
      for (const { name: resource, nominal_quota: quantity } of flavor.resources)
        found.set(quotaKey({ flavor: flavor.name, resource }), parseAmount(resource, quantity));
  return found;
}

function Quotas({ row, declared }: { row: CohortRow; declared: Cohort | null }) {
  const own = useMemo(() => ownQuotas(declared), [declared]);
  const quotas = sortQuotas(row.cohort?.usage ?? []);
  return (
    <Panel title={t`Total quota of everything below`} flush>
      {quotas.length === 0 ? (
        <NoneOf>
          <Trans>None: no queue below it has quota.</Trans>
        </NoneOf>
      ) : (
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
                  <Trans>Total</Trans>
                </Table.Th>
                <Table.Th ta="right" title={t`The cohort's own quota`}>
                  <Trans>Own quota</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Used</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Borrowed by queues</Trans>
                </Table.Th>
                <Table.Th miw={120} w="20%" />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody data-live>
              {quotas.map((quota) => {
                const { flavor, resource, subtree_quota: total, used } = quota;
                const borrowed = Math.min(used, row.borrowed.get(quotaKey(quota)) ?? 0);
                const amount = (value: number) => formatAmountShort(resource, value);
                return (
                  <Table.Tr key={quotaKey(quota)}>
                    <Table.Td data-label={t`Flavor`}>
                      <FlavorLink name={flavor} />
                    </Table.Td>
                    <Table.Td data-label={t`Resource`}>{resource}</Table.Td>
                    <Table.Td ta="right" data-label={t`Total`}>
                      {amount(total)}
                    </Table.Td>
                    <Table.Td ta="right" data-label={t`Own quota`}>
                      {amount(own.get(quotaKey(quota)) ?? 0)}
                    </Table.Td>
                    <Table.Td ta="right" data-label={t`Used`}>
                      {amount(used)}
                    </Table.Td>
                    <Table.Td ta="right" data-label={t`Borrowed by queues`}>
                      {amount(borrowed)}
                    </Table.Td>
                    <Table.Td data-wide>
                      <Meter
                        height={10}
                        label={t`${formatShare(used, total)} used`}
                        total={total}
                        segments={[
                          { value: used - borrowed, color: "var(--kw-used)", label: amount(used - borrowed) },
                          {
                            value: borrowed,
                            color: "var(--kw-borrowed)",
                            label: t`${amount(borrowed)} borrowed`,
                          },
                        ]}
                      />
                    </Table.Td>
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

function Members({ rows }: { rows: TreeRow[] }) {
  return (
    <Panel title={t`Direct members`} flush>
      <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
        <Table.Tbody data-live>
          {rows.map((row) => (
            <Table.Tr key={`${row.kind} ${row.name}`}>
              <Table.Td>
                {row.kind === "cohort" ? (
                  <CohortLink name={row.name} />
                ) : (
                  <ClusterQueueLink name={row.name} />
                )}
              </Table.Td>
              <Table.Td c="var(--kw-muted)">
                {row.kind === "cohort"
                  ? plural(row.queues, { one: "cohort of # queue", other: "cohort of # queues" })
                  : t`ClusterQueue`}
              </Table.Td>
              <Table.Td ta="right">
                <Trans>
                  {formatCount(row.kind === "cohort" ? row.admitted : row.queue.admitted)} admitted
                </Trans>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}

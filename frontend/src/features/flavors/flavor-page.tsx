/** One flavor: the nodes that it reaches, what they have, and what quota promises of them to whom. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Grid, Group, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { flavorQuery } from "@/api/flavors";
import { yamlQuery } from "@/api/manifests";
import type { ResourceFlavor } from "@/api/types";
import { BackLink } from "@/components/back-link";
import { BadgeDot } from "@/components/badge-dot";
import { EmptyState } from "@/components/empty-state";
import { KeyValues, NoneOf, taintRest, taintWords } from "@/components/key-values";
import { YamlPanel } from "@/components/manifest/yaml-panel";
import { TopologyLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort } from "@/lib/quantity";

export interface FlavorPageProps {
  name: string;
  /** Its nodes as a table. */
  nodes: ReactNode;
  /** Its quotas by queue. */
  quotas: ReactNode;
  /** The buttons by which it is changed. */
  actions: ReactNode;
}

export function FlavorPage({ name, nodes, quotas, actions }: FlavorPageProps) {
  const cluster = useCluster();
  const flavor = useQuery(flavorQuery(cluster, name));
  const missing = flavor.error instanceof ApiError && flavor.error.status === 404;
  return (
    <>
      <PageHeader
        title={name}
        trail={
          <BackLink to="/flavors">
            <Trans>Flavors</Trans>
          </BackLink>
        }
        facts={flavor.data !== undefined && <About flavor={flavor.data} />}
        actions={flavor.data !== undefined && actions}
      />
      {flavor.isPending && <Skeleton height={320} />}
      {missing && (
        <Panel>
          <EmptyState icon="flavors" title={t`No such flavor`}>
            <Trans>Queues may name a flavor before it exists; they become active when it does.</Trans>
          </EmptyState>
        </Panel>
      )}
      {flavor.error !== null && !missing && (
        <QueryError title={t`The flavor ${name} cannot be shown`} query={flavor} />
      )}
      {flavor.data !== undefined && (
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 8 }}>
            <Stack gap="md">
              <Capacity flavor={flavor.data} />
              {quotas}
              {nodes}
            </Stack>
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 4 }}>
            <Stack gap="md">
              <Selection flavor={flavor.data} />
              <YamlPanel query={yamlQuery(cluster, { kind: "ResourceFlavor", name })} />
            </Stack>
          </Grid.Col>
        </Grid>
      )}
    </>
  );
}

function About({ flavor }: { flavor: ResourceFlavor }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      {flavor.topology !== "" && (
        <span>
          <Trans>
            topology <TopologyLink name={flavor.topology} />
          </Trans>
        </span>
      )}
      {flavor.quota_only && (
        <BadgeDot
          label={t`Quota only`}
          color="gray"
          hint={t`Only quota decides: pods without devices are not placed on particular nodes.`}
        />
      )}
    </Group>
  );
}

function Capacity({ flavor }: { flavor: ResourceFlavor }) {
  return (
    <Panel title={t`Node capacity and total quota`} flush>
      {flavor.capacity.length === 0 ? (
        <NoneOf>
          <Trans>No queue has quota in this flavor, or none of its nodes is known.</Trans>
        </NoneOf>
      ) : (
        <WideTable>
          <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>
                  <Trans>Resource</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Capacity of the nodes</Trans>
                </Table.Th>
                <Table.Th ta="right" title={t`Requested by unmanaged pods on its nodes`}>
                  <Trans>Held by unmanaged pods</Trans>
                </Table.Th>
                <Table.Th ta="right" title={t`The sum of all nominal quotas`}>
                  <Trans>Total quota</Trans>
                </Table.Th>
                <Table.Th />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {flavor.capacity.map(
                ({ resource, allocatable, used_by_others, promised, exceeded, followed_by }) => (
                  <Table.Tr key={resource}>
                    <Table.Td>{resource}</Table.Td>
                    <Table.Td ta="right">{formatAmountShort(resource, allocatable)}</Table.Td>
                    <Table.Td ta="right">{formatAmountShort(resource, used_by_others)}</Table.Td>
                    <Table.Td ta="right">
                      {formatAmountShort(resource, promised)}
                      {followed_by.map(({ kind, name, share, headroom }) => (
                        <Text
                          key={`${kind} ${name}`}
                          fz="xs"
                          c="var(--kw-muted)"
                          title={t`The quota of ${kind} ${name} is computed from the capacity that unmanaged pods leave`}
                        >
                          {name}: {share}
                          {headroom !== "0" && t`, less ${headroom}`}
                        </Text>
                      ))}
                    </Table.Td>
                    <Table.Td>
                      {exceeded && <BadgeDot label={t`Exceeds the capacity`} color="orange" />}
                    </Table.Td>
                  </Table.Tr>
                ),
              )}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

function Selection({ flavor }: { flavor: ResourceFlavor }) {
  const labels = Object.entries(flavor.node_labels);
  return (
    <>
      <Panel title={t`Node labels`} flush>
        {labels.length === 0 ? (
          <NoneOf>
            <Trans>None: it selects every node.</Trans>
          </NoneOf>
        ) : (
          <KeyValues rows={labels} />
        )}
      </Panel>
      <Panel title={t`Taints`} flush>
        {flavor.node_taints.length === 0 ? (
          <NoneOf>
            <Trans>None: every workload may use this flavor.</Trans>
          </NoneOf>
        ) : (
          <KeyValues
            rows={flavor.node_taints.map((taint) => [String(taint.key ?? ""), taintRest(taint)] as const)}
          />
        )}
      </Panel>
      {flavor.tolerations.length > 0 && (
        <Panel title={t`Tolerations added to its pods`}>
          {flavor.tolerations.map((toleration) => (
            <Text key={JSON.stringify(toleration)} fz="sm" style={{ overflowWrap: "anywhere" }}>
              {taintWords(toleration)}
            </Text>
          ))}
        </Panel>
      )}
    </>
  );
}

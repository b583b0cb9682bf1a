/** The flavors: which nodes each reaches, and what quota promises of them; and the topologies. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useCluster, useIsSeveral } from "@/api/cluster";
import { flavorsQuery, topologiesQuery } from "@/api/flavors";
import { nodesQuery } from "@/api/nodes";
import type { Node, ResourceFlavor, Topology } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { RowCluster } from "@/components/clusters/row-cluster";
import { EmptyState } from "@/components/empty-state";
import { Facts } from "@/components/facts";
import { AmountMeter } from "@/components/figures/amount-meter";
import { taintWords } from "@/components/key-values";
import { FlavorLink, TopologyLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { formatCount } from "@/lib/quantity";

/** `actions`: the button by which one is made. */
export function FlavorsPage({ actions }: { actions: ReactNode }) {
  const cluster = useCluster();
  const flavors = useQuery(flavorsQuery(cluster));
  const topologies = useQuery(topologiesQuery(cluster));
  const nodes = useQuery(nodesQuery(cluster));
  return (
    <>
      <PageHeader title={t`Flavors`} actions={actions} />
      {flavors.isPending && <Skeleton height={240} />}
      <QueryError title={t`The flavors cannot be shown`} query={flavors} />
      {flavors.data !== undefined && (
        <Stack gap="md">
          <FlavorTable flavors={flavors.data} nodes={nodes.data ?? null} />
          <Topologies topologies={topologies.data ?? []} flavors={flavors.data} />
        </Stack>
      )}
    </>
  );
}

function FlavorTable({ flavors, nodes }: { flavors: ResourceFlavor[]; nodes: Node[] | null }) {
  const several = useIsSeveral();
  if (flavors.length === 0) {
    return (
      <Panel>
        <EmptyState icon="flavors" title={t`No flavors yet`}>
          <Trans>A ResourceFlavor selects nodes by their labels. Apply its manifest to add one.</Trans>
        </EmptyState>
      </Panel>
    );
  }
  return (
    <Panel flush>
      <WideTable blocks>
        <Table fz="sm" verticalSpacing={8} horizontalSpacing="md" layout="auto" aria-label={t`Flavors`}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Flavor</Trans>
              </Table.Th>
              {several && <ClusterHead />}
              <Table.Th ta="right">
                <Trans>Nodes</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Node labels</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Taints</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Topology</Trans>
              </Table.Th>
              <Table.Th
                miw={180}
                title={t`The resource whose total quota is the largest share of the nodes' capacity`}
              >
                <Trans>Quota / capacity</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {flavors.map((flavor) => (
              <RowCluster
                key={`${flavor.cluster}/${flavor.name}`}
                cluster={several ? flavor.cluster : undefined}
              >
                <FlavorRow flavor={flavor} nodes={nodes} />
              </RowCluster>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

function ClusterHead() {
  return (
    <Table.Th>
      <Trans>Cluster</Trans>
    </Table.Th>
  );
}

function FlavorRow({ flavor, nodes }: { flavor: ResourceFlavor; nodes: Node[] | null }) {
  const several = useIsSeveral();
  const reached = nodes?.filter(
    (node) => node.cluster === flavor.cluster && node.flavors.includes(flavor.name),
  );
  return (
    <Table.Tr>
      <Table.Td data-wide>
        <FlavorLink name={flavor.name} fw={550} />
      </Table.Td>
      {several && <Table.Td data-label={t`Cluster`}>{flavor.cluster}</Table.Td>}
      <Table.Td ta="right" data-label={t`Nodes`}>
        {reached === undefined ? "…" : formatCount(reached.length)}
      </Table.Td>
      <Table.Td
        data-label={t`Node labels`}
        data-wide
        data-none={Object.keys(flavor.node_labels).length === 0 || undefined}
      >
        <Facts texts={Object.entries(flavor.node_labels).map(([key, value]) => `${key}=${value}`)} />
      </Table.Td>
      <Table.Td data-label={t`Taints`} data-wide data-none={flavor.node_taints.length === 0 || undefined}>
        <Facts texts={flavor.node_taints.map(taintWords)} />
      </Table.Td>
      <Table.Td data-label={t`Topology`} data-none={flavor.topology === "" || undefined}>
        {flavor.topology === "" ? "–" : <TopologyLink name={flavor.topology} />}
      </Table.Td>
      <Table.Td data-label={t`Quota / capacity`} data-wide>
        <Promised flavor={flavor} />
      </Table.Td>
    </Table.Tr>
  );
}

/** The promised share of the resource that is promised most. */
function Promised({ flavor }: { flavor: ResourceFlavor }) {
  const exceeded = flavor.capacity.filter((each) => each.exceeded);
  const [scarcest] = flavor.capacity
    .filter((each) => each.allocatable > 0)
    .toSorted((a, b) => b.promised / b.allocatable - a.promised / a.allocatable);
  if (scarcest === undefined) return <Text fz="sm">–</Text>;
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      <div style={{ flex: 1 }}>
        <AmountMeter resource={scarcest.resource} used={scarcest.promised} total={scarcest.allocatable} />
        <Text fz={11.5} c="var(--kw-muted)">
          {scarcest.resource}
        </Text>
      </div>
      {exceeded.length > 0 && (
        <BadgeDot
          label={t`Exceeds the capacity`}
          color="orange"
          hint={t`Quotas exceed the nodes' capacity of ${exceeded.map((each) => each.resource).join(", ")}.`}
        />
      )}
    </Group>
  );
}

function Topologies({ topologies, flavors }: { topologies: Topology[]; flavors: ResourceFlavor[] }) {
  const several = useIsSeveral();
  if (topologies.length === 0) return null;
  return (
    <Panel title={t`Topologies`} flush>
      <WideTable blocks>
        <Table fz="sm" verticalSpacing={8} horizontalSpacing="md" layout="auto" aria-label={t`Topologies`}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Topology</Trans>
              </Table.Th>
              {several && <ClusterHead />}
              <Table.Th>
                <Trans>Levels, widest first</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Flavors</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {topologies.map((topology) => (
              <RowCluster
                key={`${topology.cluster}/${topology.name}`}
                cluster={several ? topology.cluster : undefined}
              >
                <Table.Tr>
                  <Table.Td data-wide>
                    <TopologyLink name={topology.name} fw={550} />
                  </Table.Td>
                  {several && <Table.Td data-label={t`Cluster`}>{topology.cluster}</Table.Td>}
                  <Table.Td data-label={t`Levels, widest first`} data-wide>
                    <Facts texts={topology.levels} />
                  </Table.Td>
                  <Table.Td data-label={t`Flavors`} data-wide>
                    {flavors
                      .filter(
                        ({ cluster, topology: name }) =>
                          cluster === topology.cluster && name === topology.name,
                      )
                      .map((flavor) => flavor.name)
                      .join(", ") || "–"}
                  </Table.Td>
                </Table.Tr>
              </RowCluster>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

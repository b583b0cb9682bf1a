/** A topology as a map: its blocks, racks and hosts, with what of each is taken. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { SegmentedControl, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useCluster } from "@/api/cluster";
import { flavorsQuery, topologiesQuery } from "@/api/flavors";
import { nodesQuery } from "@/api/nodes";
import type { Node, Topology } from "@/api/types";
import { BackLink } from "@/components/back-link";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { AmountMeter } from "@/components/figures/amount-meter";
import { NodeLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { formatAmountShort, formatMib } from "@/lib/quantity";
import { nodeState } from "@/lib/words/node-state";
import classes from "./flavors.module.css";
import { type Domain, domainsOf, heldOf, MAP_RESOURCES, type MapResource } from "./topology-tree";

export function TopologyPage({ name }: { name: string }) {
  const cluster = useCluster();
  const topologies = useQuery(topologiesQuery(cluster));
  const nodes = useQuery(nodesQuery(cluster));
  const topology = topologies.data?.find((each) => each.name === name);
  const error = topologies.error ?? nodes.error;
  return (
    <>
      <PageHeader
        title={name}
        trail={
          <BackLink to="/flavors">
            <Trans>Flavors</Trans>
          </BackLink>
        }
        facts={
          topology !== undefined && (
            <Text fz="sm" c="var(--kw-muted)">
              <Trans>Topology by {topology.levels.join(" › ")}</Trans>
            </Text>
          )
        }
      />
      {error !== null && (
        <ErrorState
          title={t`The topology cannot be shown`}
          message={error.message}
          onRetry={() => void Promise.all([topologies.refetch(), nodes.refetch()])}
        />
      )}
      {error === null && (topologies.isPending || nodes.isPending) && <Skeleton height={320} />}
      {topologies.data !== undefined && topology === undefined && (
        <Panel>
          <EmptyState icon="flavors" title={t`No such topology`}>
            <Trans>It was deleted, or it never existed.</Trans>
          </EmptyState>
        </Panel>
      )}
      {topology !== undefined && nodes.data !== undefined && (
        <DomainMap topology={topology} nodes={nodes.data} />
      )}
    </>
  );
}

/** The nodes that flavors with this topology reach, or all while none names it. */
function useReached(topology: Topology, nodes: Node[]): Node[] {
  const flavors = useQuery(flavorsQuery(useCluster()));
  return useMemo(() => {
    const names =
      flavors.data?.filter((each) => each.topology === topology.name).map((each) => each.name) ?? [];
    return names.length === 0
      ? nodes
      : nodes.filter((node) => node.flavors.some((name) => names.includes(name)));
  }, [flavors.data, topology.name, nodes]);
}

function DomainMap({ topology, nodes }: { topology: Topology; nodes: Node[] }) {
  const [resource, setResource] = useState<MapResource>("gpu-memory");
  const reached = useReached(topology, nodes);
  const domains = useMemo(
    () => domainsOf(reached, topology.levels, resource),
    [reached, topology.levels, resource],
  );
  const hosts = useMemo(
    () => (domains.length > 0 ? [] : reached.filter((node) => heldOf(node, resource).total > 0)),
    [domains, reached, resource],
  );
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label={t`Colors show`}
        size="xs"
        data={MAP_RESOURCES.map((name) => ({
          value: name,
          label: name === "gpu-memory" ? t`GPU memory` : name,
        }))}
        value={resource}
        onChange={(value) => setResource(value as MapResource)}
        style={{ alignSelf: "flex-start" }}
      />
      {domains.length === 0 && hosts.length === 0 && (
        <Panel>
          <EmptyState icon="nodes" title={t`No node belongs to this topology`}>
            <Trans>A node belongs to a topology if it has the label of each level.</Trans>
          </EmptyState>
        </Panel>
      )}
      <div className={classes.widest}>
        {domains.map((domain) => (
          <DomainView key={domain.path.join("/")} domain={domain} resource={resource} />
        ))}
      </div>
      {hosts.length > 0 && <Hosts nodes={hosts} resource={resource} />}
    </Stack>
  );
}

const words = (resource: MapResource, amount: number) =>
  resource === "gpu-memory" ? formatMib(amount) : formatAmountShort(resource, amount);

function DomainView({ domain, resource }: { domain: Domain; resource: MapResource }) {
  const { total } = domain;
  return (
    <section className={classes.domain} aria-label={`${domain.level} ${domain.name}`}>
      <div className={classes.domainHead}>
        <span title={domain.level}>{domain.name}</span>
        <small className="kw-number">
          <Trans>
            {words(resource, domain.free)} of {words(resource, total)} free, at most{" "}
            {words(resource, domain.freest)} on one node
          </Trans>
        </small>
      </div>
      {domain.children.length > 0 ? (
        <div className={classes.domains}>
          {domain.children.map((child) => (
            <DomainView key={child.path.join("/")} domain={child} resource={resource} />
          ))}
        </div>
      ) : (
        <Hosts nodes={domain.nodes} resource={resource} />
      )}
    </section>
  );
}

function Hosts({ nodes, resource }: { nodes: Node[]; resource: MapResource }) {
  return (
    <div className={classes.hosts}>
      {nodes.map((node) => {
        const { used, total } = heldOf(node, resource);
        const state = nodeState(node);
        return (
          <div key={node.name} className={classes.host} data-closed={state !== "ready" || undefined}>
            <NodeLink name={node.name} inRow />
            <AmountMeter
              resource={resource === "gpu-memory" ? "gpumem" : resource}
              used={used}
              total={total}
            />
          </div>
        );
      })}
    </div>
  );
}

/** One node: whether it takes pods, what is asked of it, who runs there, and what the cluster says of it. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Grid, Group, Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { yamlQuery } from "@/api/manifests";
import { nodeQuery } from "@/api/nodes";
import { useIsPast } from "@/api/past/past";
import type { NodeDetail } from "@/api/types";
import { Ago } from "@/components/ago";
import { BackLink } from "@/components/back-link";
import { EmptyState } from "@/components/empty-state";
import { KeyValues, NoneOf, taintRest } from "@/components/key-values";
import { YamlPanel } from "@/components/manifest/yaml-panel";
import { FlavorLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { nodeState } from "@/lib/words/node-state";
import { NodeAmounts } from "./node-amounts";
import { NodeStateBadge } from "./node-columns";
import { NodeConditions } from "./node-conditions";
import { NodePods } from "./node-pods";
import { NodeUse } from "./node-use";
import { PublishedDevices } from "./published-devices";

export interface NodePageProps {
  name: string;
  /** The buttons by which it is closed and opened. */
  actions: (node: NodeDetail) => ReactNode;
  /** Its devices with who holds them. */
  devices: (node: NodeDetail) => ReactNode;
}

export function NodePage({ name, actions, devices }: NodePageProps) {
  const node = useQuery(nodeQuery(useCluster(), name));
  const missing = node.error instanceof ApiError && node.error.status === 404;
  return (
    <>
      <PageHeader
        title={name}
        trail={
          <BackLink to="/nodes">
            <Trans>Nodes</Trans>
          </BackLink>
        }
        facts={node.data !== undefined && <Facts node={node.data} />}
        actions={node.data !== undefined && actions(node.data)}
      />
      {node.isPending && <Skeleton height={320} />}
      {missing && (
        <Panel>
          <EmptyState icon="nodes" title={t`No such node`}>
            <Trans>The cluster has no node with this name, or it was deleted.</Trans>
          </EmptyState>
        </Panel>
      )}
      {node.error !== null && !missing && (
        <QueryError title={t`The node ${name} cannot be shown`} query={node} />
      )}
      {node.data !== undefined && <Whole node={node.data} devices={devices(node.data)} />}
    </>
  );
}

function Facts({ node }: { node: NodeDetail }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      <NodeStateBadge state={nodeState(node)} />
      {node.flavors.length > 0 && (
        <span>
          <Trans>flavors</Trans>{" "}
          {node.flavors.map((flavor, place) => (
            <span key={flavor}>
              {place > 0 && ", "}
              <FlavorLink name={flavor} />
            </span>
          ))}
        </span>
      )}
      <span>
        <Trans>
          joined <Ago time={node.created_at} />
        </Trans>
      </span>
    </Group>
  );
}

function Whole({ node, devices }: { node: NodeDetail; devices: ReactNode }) {
  const cluster = useCluster();
  const past = useIsPast();
  const labels = Object.entries(node.labels).sort(([a], [b]) => a.localeCompare(b));
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: 8 }}>
        <Stack gap="md">
          <NodeAmounts node={node} />
          {devices}
          {!past && <NodeUse devices={node.devices} />}
          <PublishedDevices node={node.name} />
          <NodePods node={node.name} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 4 }}>
        <Stack gap="md">
          <NodeConditions conditions={node.conditions} />
          <Panel title={t`Taints`} flush>
            {node.taints.length === 0 ? (
              <NoneOf>
                <Trans>None: pods need no toleration to run here.</Trans>
              </NoneOf>
            ) : (
              <KeyValues rows={node.taints.map((taint) => [taint.key, taintRest(taint)] as const)} />
            )}
          </Panel>
          <Panel title={t`Labels`} flush>
            {labels.length === 0 ? (
              <NoneOf>
                <Trans>None.</Trans>
              </NoneOf>
            ) : (
              <KeyValues rows={labels} />
            )}
          </Panel>
          <YamlPanel query={yamlQuery(cluster, { kind: "Node", name: node.name })} />
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

/** One LocalQueue: where it leads, whether it is active, and whose workloads are in it. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, SimpleGrid, Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { yamlQuery } from "@/api/manifests";
import { localQueueQuery } from "@/api/queues";
import type { LocalQueue } from "@/api/types";
import { BackLink } from "@/components/back-link";
import { EmptyState } from "@/components/empty-state";
import { Stat } from "@/components/figures/stat";
import { YamlPanel } from "@/components/manifest/yaml-panel";
import { ClusterQueueLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { formatCount } from "@/lib/quantity";
import { QueueState } from "./queue-state";

export interface LocalQueuePageProps {
  namespace: string;
  name: string;
  /** Its workloads as a list. */
  workloads: ReactNode;
  /** The charts of the queue. */
  history: ReactNode;
  /** The buttons by which it is changed. */
  actions: ReactNode;
}

export function LocalQueuePage({ namespace, name, workloads, history, actions }: LocalQueuePageProps) {
  const cluster = useCluster();
  const queue = useQuery(localQueueQuery(cluster, namespace, name));
  const missing = queue.error instanceof ApiError && queue.error.status === 404;
  return (
    <>
      <PageHeader
        title={`${namespace}/${name}`}
        trail={
          <BackLink to="/queues">
            <Trans>Queues</Trans>
          </BackLink>
        }
        facts={queue.data !== undefined && <Facts queue={queue.data} />}
        actions={queue.data !== undefined && actions}
      />
      {queue.isPending && <Skeleton height={320} />}
      {missing && (
        <Panel>
          <EmptyState icon="queues" title={t`No such LocalQueue`}>
            <Trans>Workloads may refer to a queue before it exists; they wait until it is created.</Trans>
          </EmptyState>
        </Panel>
      )}
      {queue.error !== null && !missing && (
        <QueryError title={t`The LocalQueue cannot be shown`} query={queue} />
      )}
      {queue.data !== undefined && (
        <Stack gap="md">
          <SimpleGrid cols={{ base: 3 }} spacing="md">
            <Stat label={t`Pending`} value={formatCount(queue.data.pending)} />
            <Stat label={t`Reserving quota`} value={formatCount(queue.data.reserving)} />
            <Stat label={t`Admitted`} value={formatCount(queue.data.admitted)} />
          </SimpleGrid>
          {workloads}
          {history}
          <YamlPanel query={yamlQuery(cluster, { kind: "LocalQueue", namespace, name })} />
        </Stack>
      )}
    </>
  );
}

function Facts({ queue }: { queue: LocalQueue }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      <QueueState queue={queue} />
      <span>
        <Trans>
          submits to <ClusterQueueLink name={queue.cluster_queue} inText />
        </Trans>
      </span>
      <span>
        <Trans>fair weight {queue.fair_weight}</Trans>
      </span>
    </Group>
  );
}

/** One ClusterQueue: which workloads wait in it and which hold its quota, how much of it there is, and its rules. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { yamlQuery } from "@/api/manifests";
import { clusterQueueQuery } from "@/api/queues";
import type { ClusterQueue } from "@/api/types";
import { BackLink } from "@/components/back-link";
import { YamlPanel } from "@/components/manifest/yaml-panel";
import { CohortLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { QueryError } from "@/components/query-error";
import { LocalQueues } from "./local-queues";
import { Policies } from "./policies";
import { QueueState } from "./queue-state";
import classes from "./queues.module.css";
import { type EditQuota, Quotas } from "./quotas";
import { UserLimits } from "./user-limits";

export interface ClusterQueuePageProps {
  name: string;
  /** The waiting workloads, then the workloads with quota. */
  workloads: ReactNode;
  /** The charts of the queue. */
  history: ReactNode;
  /** The buttons by which it is changed. */
  actions: ReactNode;
  editQuota: EditQuota;
}

export function ClusterQueuePage({ name, workloads, history, actions, editQuota }: ClusterQueuePageProps) {
  const cluster = useCluster();
  const queue = useQuery(clusterQueueQuery(cluster, name));
  const live = useLive(({ data }) => data?.cluster_queues[name]);
  return (
    <>
      <PageHeader
        title={name}
        trail={
          <BackLink to="/queues">
            <Trans>Queues</Trans>
          </BackLink>
        }
        facts={queue.data !== undefined && <Facts queue={queue.data} />}
        actions={queue.data !== undefined && actions}
      />
      <QueryError title={t`The ClusterQueue ${name} cannot be shown`} query={queue} />
      {queue.isPending && <Skeleton height={320} />}
      {queue.data !== undefined && (
        <Stack gap="md">
          <div className={classes.page}>
            <Stack gap="md" miw={0}>
              {workloads}
            </Stack>
            <Stack gap="md" miw={0}>
              <Quotas queue={queue.data} live={live} editQuota={editQuota} />
              <Policies queue={queue.data} />
              <UserLimits clusterQueue={name} />
              <LocalQueues clusterQueue={name} />
            </Stack>
          </div>
          {history}
          <YamlPanel query={yamlQuery(cluster, { kind: "ClusterQueue", name })} />
        </Stack>
      )}
    </>
  );
}

function Facts({ queue }: { queue: ClusterQueue }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      <QueueState queue={queue} />
      <Text span fz="sm">
        {queue.cohort === "" ? (
          t`in no cohort`
        ) : (
          <Trans>
            in cohort <CohortLink name={queue.cohort} inText />
          </Trans>
        )}
      </Text>
      <span>
        <Trans>fair weight {queue.fair_weight}</Trans>
      </span>
    </Group>
  );
}

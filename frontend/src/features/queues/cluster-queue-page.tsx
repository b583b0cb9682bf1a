/** One ClusterQueue: its quotas and their use, who waits in it and who feeds it. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Badge, Grid, Group, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { waiting } from "@/api/live/live-data";
import { yamlQuery } from "@/api/manifests";
import { clusterQueueQuery } from "@/api/queues";
import type { ClusterQueue, LiveClusterQueue } from "@/api/types";
import { BackLink } from "@/components/back-link";
import { Stat } from "@/components/figures/stat";
import { YamlPanel } from "@/components/manifest/yaml-panel";
import { CohortLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { QueryError } from "@/components/query-error";
import { formatCount } from "@/lib/quantity";
import { LocalQueues } from "./local-queues";
import { PendingList } from "./pending-list";
import { Policies } from "./policies";
import { QueueState } from "./queue-state";
import { formatWeightedShare } from "./quota";
import { Quotas } from "./quotas";

export interface ClusterQueuePageProps {
  name: string;
  /** The charts of the queue. */
  history: ReactNode;
  /** The buttons by which it is changed. */
  actions: ReactNode;
}

export function ClusterQueuePage({ name, history, actions }: ClusterQueuePageProps) {
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
          {live !== undefined && <Numbers live={live} />}
          <Quotas queue={queue.data} usage={live?.usage ?? []} />
          {history}
          <Grid gap="md">
            <Grid.Col span={{ base: 12, lg: 8 }}>
              <PendingList queue={name} pending={live === undefined ? null : waiting(live)} />
            </Grid.Col>
            <Grid.Col span={{ base: 12, lg: 4 }}>
              <Stack gap="md">
                <LocalQueues clusterQueue={name} />
                <Policies queue={queue.data} />
                <YamlPanel query={yamlQuery(cluster, { kind: "ClusterQueue", name })} />
              </Stack>
            </Grid.Col>
          </Grid>
        </Stack>
      )}
    </>
  );
}

function Facts({ queue }: { queue: ClusterQueue }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      <QueueState queue={queue} />
      <Badge variant="default" tt="none" radius="sm">
        {queue.queueing_strategy}
      </Badge>
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

function Numbers({ live }: { live: LiveClusterQueue }) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="md">
      <Stat
        label={t`Pending`}
        value={formatCount(waiting(live))}
        note={t`${formatCount(live.inadmissible)} inadmissible`}
      />
      <Stat label={t`Reserving quota`} value={formatCount(live.reserving)} />
      <Stat label={t`Admitted`} value={formatCount(live.admitted)} />
      <Stat
        label={t`Weighted share`}
        value={`${formatWeightedShare(live.weighted_share)} ‰`}
        note={
          live.weighted_share === 0
            ? t`nothing borrowed`
            : t`of what the cohort can lend, divided by the fair weight`
        }
      />
    </SimpleGrid>
  );
}

/** The fullest queues. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useMemo } from "react";
import { useLive } from "@/api/cluster";
import { waiting } from "@/api/live/live-data";
import { EmptyState } from "@/components/empty-state";
import { Meter } from "@/components/figures/meter";
import { TextLink } from "@/components/link";
import { Panel } from "@/components/panel";
import { formatCount, formatShare } from "@/lib/quantity";
import { type HotQueue, hottestQueues } from "./summary";

const MOST = 5;

export function HottestQueues() {
  const queues = useLive((live) => live.data?.cluster_queues);
  const hottest = useMemo(() => (queues === undefined ? null : hottestQueues(queues, MOST)), [queues]);
  return (
    <Panel
      title={t`Queues by pending workloads`}
      aside={
        <TextLink to="/queues" fz="sm">
          <Trans>All queues</Trans>
        </TextLink>
      }
    >
      {hottest === null && <Skeleton height={200} />}
      {hottest?.length === 0 && (
        <EmptyState icon="queues" title={t`No queue is in use`}>
          <Trans>A ClusterQueue appears here when a workload waits in it or holds its quota.</Trans>
        </EmptyState>
      )}
      <Stack gap={12} data-live>
        {hottest?.map((hot) => (
          <QueueRow key={hot.name} {...hot} />
        ))}
      </Stack>
    </Panel>
  );
}

function QueueRow({ name, queue, fullest }: HotQueue) {
  const share = fullest?.share ?? 0;
  const percent = Number.isFinite(share) ? formatShare(share, 1) : t`borrowed only`;
  const over = Math.max(0, Math.min(share, 10) - 1);
  const label = fullest === null ? t`no quota` : t`${fullest.resource} of ${fullest.flavor}: ${percent}`;
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={4} wrap="nowrap">
        <TextLink to="/queues/$name" params={{ name }} fz="sm" fw={550} truncate>
          {name}
        </TextLink>
        <Text fz="xs" c="var(--kw-muted)" className="kw-number" style={{ whiteSpace: "nowrap" }}>
          <Trans>
            {formatCount(waiting(queue))} pending · {formatCount(queue.admitted)} admitted
          </Trans>
        </Text>
      </Group>
      <Meter
        label={label}
        total={1 + over}
        segments={[
          { value: Math.min(share, 1), color: "var(--kw-used)", label },
          { value: over, color: "var(--kw-borrowed)", label: t`borrowed` },
        ]}
      />
      <Text fz="xs" c="var(--kw-muted)" className="kw-number" mt={2}>
        {label}
      </Text>
    </div>
  );
}

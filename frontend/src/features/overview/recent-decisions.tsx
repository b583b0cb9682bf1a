/** The last decisions of the scheduler, and why it made them. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { latestDecisionsQuery } from "@/api/decisions";
import type { Decision } from "@/api/types";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import { DecisionWhy } from "@/components/decision-why";
import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { useFirstRead } from "@/lib/first-read";
import { decisionLook } from "@/lib/words/decision-action";

const MOST = 12;

export function RecentDecisions() {
  const cluster = useCluster();
  const decisions = useQuery(latestDecisionsQuery(cluster, MOST));
  const first = useFirstRead(decisions);
  return (
    <Panel
      title={t`Latest decisions`}
      aside={
        <TextLink to="/decisions" fz="sm">
          <Trans>All decisions</Trans>
        </TextLink>
      }
    >
      {first.waits && <Skeleton height={220} />}
      {first.error !== null && (
        <QueryError
          title={t`The decisions cannot be shown`}
          query={{ error: first.error, refetch: decisions.refetch }}
        />
      )}
      {decisions.data?.results.length === 0 && (
        <EmptyState icon="clock" title={t`No decisions yet`}>
          <Trans>Every admission, preemption, eviction and refusal appears here with its reason.</Trans>
        </EmptyState>
      )}
      <Stack gap={6}>
        {decisions.data?.results.map((decision) => (
          <DecisionRow key={decision.id} decision={decision} />
        ))}
      </Stack>
    </Panel>
  );
}

function DecisionRow({ decision }: { decision: Decision }) {
  const { label, color } = decisionLook(decision.action);
  const { namespace, workload_name: name } = decision;
  return (
    <Group gap="xs" wrap="nowrap">
      <BadgeDot label={label} color={color} />
      <TextLink
        to="/workloads/$namespace/$name"
        params={{ namespace, name }}
        fz="sm"
        miw={90}
        style={{ flex: "0 1 auto" }}
      >
        <MiddleEllipsis text={`${namespace}/${name}`} />
      </TextLink>
      <Text fz="xs" truncate flex={1} component="span" visibleFrom="sm">
        <DecisionWhy decision={decision} />
      </Text>
      <Text fz="xs" c="var(--kw-muted)" ml="auto" style={{ whiteSpace: "nowrap" }}>
        <Ago time={decision.decided_at} />
      </Text>
    </Group>
  );
}

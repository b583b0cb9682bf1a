/** The workloads that the reader submitted: how many are in which state, and the newest. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import type { Workload } from "@/api/types";
import { workloadCountsQuery, workloadsQuery } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { WorkloadLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { formatCount } from "@/lib/quantity";
import { shortReason } from "@/lib/words/pending-reason";
import { isWorkloadState, stateLook } from "@/lib/words/workload-state";

const MOST = 6;

export function MyJobs({ username }: { username: string }) {
  const cluster = useCluster();
  const mine = { submitted_by: username };
  const counts = useQuery(workloadCountsQuery(cluster, "state", mine));
  const list = useInfiniteQuery(workloadsQuery(cluster, mine));
  const newest = list.data?.pages[0]?.results.slice(0, MOST);
  return (
    <Panel
      title={t`My jobs`}
      aside={
        <TextLink to="/workloads" search={mine} fz="sm">
          <Trans>All my workloads</Trans>
        </TextLink>
      }
      mb="md"
    >
      {list.isPending && <Skeleton height={120} />}
      <QueryError title={t`Your jobs cannot be shown`} query={list} />
      {newest?.length === 0 && (
        <EmptyState icon="workloads" title={t`You have not submitted any workloads here`}>
          <Trans>Submit a job on the Workloads page; its state then appears here.</Trans>
        </EmptyState>
      )}
      {newest !== undefined && newest.length > 0 && (
        <Stack gap={6}>
          <Group gap="md" mb={4}>
            {counts.data?.groups
              .flatMap(({ value, count }) => (isWorkloadState(value) ? [{ state: value, count }] : []))
              .map(({ state, count }) => (
                <TextLink key={state} to="/workloads" search={{ ...mine, state }} fz="sm" fw={550}>
                  {`${formatCount(count)} ${stateLook(state).label}`}
                </TextLink>
              ))}
          </Group>
          {newest.map((workload) => (
            <Row key={workload.uid} workload={workload} />
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function Row({ workload }: { workload: Workload }) {
  const { label, color, meaning } = stateLook(workload.state);
  return (
    <Group gap="xs" wrap="nowrap">
      <BadgeDot label={label} color={color} hint={meaning} />
      <Text fz="sm" component="span" style={{ flex: "0 1 auto", minWidth: 90 }}>
        <WorkloadLink namespace={workload.namespace} name={workload.name} inRow />
      </Text>
      {workload.state === "Pending" && (
        <Text fz="xs" c="var(--kw-muted)" truncate title={workload.message}>
          {shortReason(workload.reason || "PendingEvaluation")}
        </Text>
      )}
      <Text fz="xs" c="var(--kw-muted)" ml="auto" style={{ whiteSpace: "nowrap" }}>
        <Ago time={workload.created_at} />
      </Text>
    </Group>
  );
}

/** A workload that is deleted: its decisions and where it ran, which are kept; or that it never was. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { workloadDecisionsQuery } from "@/api/decisions";
import { useIsPast } from "@/api/past/past";
import type { WorkloadReference } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { Panel } from "@/components/panel";
import { decisionLook } from "@/lib/words/decision-action";
import classes from "../workloads.module.css";
import { WhereItRan } from "./where-it-ran";

export function GoneWorkload({ namespace, name }: WorkloadReference) {
  const decisions = useQuery(workloadDecisionsQuery(useCluster(), { namespace, name }));
  const rows = decisions.data?.results ?? [];
  const isPast = useIsPast();
  return (
    <Stack gap="md">
      <Panel>
        <EmptyState
          icon="workloads"
          title={
            isPast
              ? t`Workload ${namespace}/${name} is not in this checkpoint`
              : rows.length > 0
                ? t`This workload was deleted`
                : t`Workload ${namespace}/${name} does not exist`
          }
          action={
            <TextLink to="/workloads" search={{ namespace }} fz="sm" mt="xs">
              <Trans>Workloads in {namespace}</Trans>
            </TextLink>
          }
        >
          {isPast && t`It had not been submitted yet, or had ended more than an hour earlier.`}{" "}
          {rows.length > 0
            ? t`The scheduler's decisions about it are kept and shown below.`
            : !isPast && t`It may belong to a namespace that you cannot see, or its name is misspelled.`}
        </EmptyState>
      </Panel>
      <WhereItRan namespace={namespace} name={name} />
      {rows.length > 0 && (
        <Panel title={t`Decisions`}>
          {rows.map((decision) => (
            <div
              key={decision.id}
              className={classes.event}
              data-warning={["Preempt", "Evict"].includes(decision.action) || undefined}
            >
              <Text fz="sm" fw={600}>
                {decisionLook(decision.action).label}
              </Text>
              <Text fz="sm" style={{ overflowWrap: "anywhere" }}>
                {decision.message || decision.reason}
              </Text>
              <Text fz="xs" c="var(--kw-muted)">
                <Trans>
                  <Ago time={decision.decided_at} /> in ClusterQueue {decision.cluster_queue}
                </Trans>
              </Text>
            </div>
          ))}
        </Panel>
      )}
    </Stack>
  );
}

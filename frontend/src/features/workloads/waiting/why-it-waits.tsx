/** The state in one sentence, and for one that waits the reasons in tables: what its owner wants to know first. */
import { t } from "@lingui/core/macro";
import { Anchor, Box, Code, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useCluster } from "@/api/cluster";
import type { ExplainedWorkload, WorkloadDetail } from "@/api/types";
import { explanationQuery } from "@/api/workloads";
import { Icon, type IconName } from "@/components/icon";
import { useNow } from "@/lib/clock";
import { formatCount } from "@/lib/quantity";
import { formatAge, formatDuration, formatMinute, formatTimestamp, secondsBetween } from "@/lib/time";
import classes from "../workloads.module.css";
import { expectedWords } from "./expected-start";
import { ExplanationTables } from "./explanation";
import { Moves } from "./moves";
import { remedyWords } from "./remedy-words";
import { isOfNodes, stateSentence } from "./state-sentence";

const LOOKS: Record<WorkloadDetail["state"], { icon: IconName; accent: string }> = {
  Pending: { icon: "clock", accent: "var(--mantine-color-yellow-6)" },
  OnHold: { icon: "pause", accent: "var(--kw-foreign)" },
  QuotaReserved: { icon: "clock", accent: "var(--mantine-color-blue-6)" },
  Starting: { icon: "clock", accent: "var(--mantine-color-blue-6)" },
  Running: { icon: "play", accent: "var(--mantine-color-teal-6)" },
  Evicted: { icon: "alert", accent: "var(--kw-over)" },
  Succeeded: { icon: "check", accent: "var(--kw-foreign)" },
  Failed: { icon: "alert", accent: "var(--mantine-color-red-6)" },
  Finished: { icon: "check", accent: "var(--kw-foreign)" },
};
const CANNOT_START = { icon: "alert", accent: "var(--mantine-color-red-6)" } as const;

export interface StateOfWorkloadProps {
  workload: WorkloadDetail;
  /** The nodes of these flavors, and the workloads that hold their devices. */
  candidates: (flavors: readonly string[]) => ReactNode;
}

export function StateOfWorkload({ workload, candidates }: StateOfWorkloadProps) {
  const waits = workload.status === "Pending";
  const found = useQuery({ ...explanationQuery(useCluster(), workload), enabled: waits });
  const explanation = waits ? found.data : undefined;
  const reached = explanation?.state === "CannotStart" ? [] : flavorsWithoutRoom(explanation);
  return (
    <Stack gap="md" mb="md" component="section" aria-label={waits ? t`Why it waits` : t`State`}>
      <Banner workload={workload} explanation={explanation} />
      {reached.length > 0 && candidates(reached)}
      {waits && (
        <ExplanationTables
          explanation={found.data}
          error={found.error}
          onRetry={() => void found.refetch()}
        />
      )}
    </Stack>
  );
}

/** The card alone, where there is no room for the tables. */
export function StateCard({ workload }: { workload: WorkloadDetail }) {
  const waits = workload.status === "Pending";
  const found = useQuery({ ...explanationQuery(useCluster(), workload), enabled: waits });
  return <Banner workload={workload} explanation={waits ? found.data : undefined} />;
}

/** The flavors that have quota for it, and whose nodes have no room. */
function flavorsWithoutRoom(explanation: ExplainedWorkload | undefined): string[] {
  const found = explanation?.flavors.filter(({ rule, nodes }) => isOfNodes(rule) && nodes !== null);
  return [...new Set(found?.map(({ flavor }) => flavor))];
}

/** Three lines: what it waits for; since when, in which place, and when it may start; what can be done. */
function Banner({
  workload,
  explanation,
}: {
  workload: WorkloadDetail;
  explanation: ExplainedWorkload | undefined;
}) {
  const now = useNow();
  const { icon, accent } = explanation?.state === "CannotStart" ? CANNOT_START : LOOKS[workload.state];
  const estimate = explanation === undefined ? "" : expectedWords(explanation.expected_start, now);
  return (
    <div className={classes.why} style={{ ["--accent" as string]: accent }}>
      <Icon name={icon} size={22} />
      <Text fw={650} component="h2" fz="md" style={{ overflowWrap: "anywhere" }}>
        {stateSentence(workload, explanation, now)}
      </Text>
      <Facts workload={workload} explanation={explanation} now={now} />
      {estimate !== "" && (
        <Text fz="sm" title={explanation?.expected_start?.message}>
          {estimate} <AccuracyLink />
        </Text>
      )}
      {explanation !== undefined && explanation.remedy !== "" && (
        <Text fz="sm" c="var(--kw-muted)">
          {remedyWords(explanation)}
        </Text>
      )}
      {explanation?.rule === "Devices" && explanation.state !== "CannotStart" && (
        <Box>
          <Moves namespace={workload.namespace} name={workload.name} />
        </Box>
      )}
    </div>
  );
}

function AccuracyLink() {
  return (
    <Anchor renderRoot={(props) => <Link to="/accuracy" {...props} />} fz="xs">
      {t`How accurate are estimates?`}
    </Anchor>
  );
}

function Facts({
  workload,
  explanation,
  now,
}: {
  workload: WorkloadDetail;
  explanation: ExplainedWorkload | undefined;
  now: number;
}) {
  const { requeue_at: requeueAt } = workload;
  const waited = workload.status === "Pending" ? secondsBetween(workload.queued_at, null, now) : null;
  const retry = requeueAt === null ? null : Math.max(0, (Date.parse(requeueAt) - now) / 1000);
  const facts = [
    waited !== null && t`waiting for ${formatAge(waited)}`,
    explanation !== undefined &&
      explanation.position > 0 &&
      t`position ${formatCount(explanation.position)} of ${formatCount(explanation.waiting)} in its queue`,
    explanation?.planned_start != null &&
      t`planned to start at ${formatTimestamp(explanation.planned_start.starts_at)}`,
    ...(explanation?.reservations ?? []).map(
      ({ reservation, starts_at, ends_at }) =>
        t`reservation ${reservation} from ${formatMinute(starts_at)} to ${formatMinute(ends_at, starts_at)}`,
    ),
    explanation?.limit_to_start != null &&
      t`with a time limit of at most ${formatDuration(explanation.limit_to_start)} it could start now`,
    retry !== null && workload.status !== "Finished" && t`may be tried again in ${formatDuration(retry)}`,
  ].filter((fact) => fact !== false);
  return (
    <Text fz="sm" className="kw-number">
      {facts.join(" · ")}{" "}
      {workload.reason !== "" && workload.reason !== workload.status && (
        <Code fz="xs">{workload.reason}</Code>
      )}
    </Text>
  );
}

/** The state in one sentence, and for one that waits the reasons in tables: what its owner wants to know first. */
import { t } from "@lingui/core/macro";
import { Box, Code, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import type { ExplainedWorkload, WorkloadDetail } from "@/api/types";
import { explanationQuery } from "@/api/workloads";
import { Icon, type IconName } from "@/components/icon";
import { useNow } from "@/lib/clock";
import { formatCount } from "@/lib/quantity";
import { formatAge, formatDuration, secondsBetween } from "@/lib/time";
import classes from "../workloads.module.css";
import { expectedWords } from "./expected-start";
import { ExplanationTables } from "./explanation";
import { Moves } from "./moves";
import { stateSentence } from "./state-sentence";

const LOOKS: Record<WorkloadDetail["status"], { icon: IconName; accent: string }> = {
  Pending: { icon: "clock", accent: "var(--mantine-color-yellow-6)" },
  QuotaReserved: { icon: "clock", accent: "var(--mantine-color-blue-6)" },
  Admitted: { icon: "play", accent: "var(--mantine-color-teal-6)" },
  Evicted: { icon: "alert", accent: "var(--kw-over)" },
  Finished: { icon: "check", accent: "var(--kw-foreign)" },
};
const CANNOT_START = { icon: "alert", accent: "var(--mantine-color-red-6)" } as const;

export function StateOfWorkload({ workload }: { workload: WorkloadDetail }) {
  const waits = workload.status === "Pending";
  const found = useQuery({ ...explanationQuery(useCluster(), workload), enabled: waits });
  const explanation = waits ? found.data : undefined;
  return (
    <Stack gap="md" mb="md" component="section" aria-label={waits ? t`Why it waits` : t`State`}>
      <Banner workload={workload} explanation={explanation} />
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

function Banner({
  workload,
  explanation,
}: {
  workload: WorkloadDetail;
  explanation: ExplainedWorkload | undefined;
}) {
  const now = useNow();
  const { icon, accent } = explanation?.state === "CannotStart" ? CANNOT_START : LOOKS[workload.status];
  return (
    <div className={classes.why} style={{ ["--accent" as string]: accent }}>
      <Icon name={icon} size={22} />
      <Text fw={650} component="h2" fz="md" style={{ overflowWrap: "anywhere" }}>
        {stateSentence(workload, explanation, now)}
      </Text>
      {explanation !== undefined && explanation.remedy !== "" && <Text fz="sm">{explanation.remedy}</Text>}
      {explanation !== undefined && expectedWords(explanation) !== "" && (
        <Text fz="sm" title={explanation.expected_start.basis}>
          {expectedWords(explanation)}
        </Text>
      )}
      <Facts workload={workload} explanation={explanation} now={now} />
      {explanation?.rule === "Devices" && (
        <Box>
          <Moves namespace={workload.namespace} name={workload.name} />
        </Box>
      )}
    </div>
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
    explanation !== undefined &&
      explanation.position > 0 &&
      t`number ${formatCount(explanation.position)} of ${formatCount(explanation.waiting)} in its queue`,
    waited !== null && t`waiting for ${formatAge(waited)}`,
    retry !== null && workload.status !== "Finished" && t`may be tried again in ${formatDuration(retry)}`,
  ].filter((fact) => fact !== false);
  return (
    <Text fz="xs" c="var(--kw-muted)" className="kw-number">
      {workload.reason !== "" && workload.reason !== workload.status && (
        <Code fz="xs">{workload.reason}</Code>
      )}{" "}
      {facts.join(" · ")}
    </Text>
  );
}

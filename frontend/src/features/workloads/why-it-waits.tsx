/** The first thing that the owner of a waiting workload wants to know. */
import { Code, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import type { WorkloadDetail } from "@/api/types";
import { positionQuery } from "@/api/workloads";
import { Icon } from "@/components/icon";
import { useNow } from "@/lib/clock";
import { explainPendingReason } from "@/lib/pending-reason";
import { formatCount } from "@/lib/quantity";
import { formatDuration, secondsBetween } from "@/lib/time";
import { Moves } from "./moves";
import classes from "./workloads.module.css";

const HEADINGS = {
  Pending: "Why it waits",
  QuotaReserved: "Why it has not started",
  Evicted: "Why it was evicted",
} as const;

export function WhyItWaits({ workload }: { workload: WorkloadDetail }) {
  const now = useNow();
  const explanation = explainPendingReason(workload.reason);
  const waited = workload.status === "Evicted" ? null : secondsBetween(workload.queued_at, null, now);
  const position = useQuery({
    ...positionQuery(useCluster(), workload, workload.cluster_queue),
    enabled: workload.status === "Pending" && workload.cluster_queue !== "",
  }).data;
  if (workload.status === "Admitted" || workload.status === "Finished") return null;
  const { requeue_at: requeueAt } = workload;
  const retry = requeueAt === null ? null : Math.max(0, (Date.parse(requeueAt) - now) / 1000);
  return (
    <section
      className={classes.why}
      aria-label={HEADINGS[workload.status]}
      style={{
        ["--accent" as string]: workload.status === "Evicted" ? "var(--kw-over)" : "var(--kw-borrowed)",
      }}
    >
      <Icon name="clock" size={22} />
      <Text fw={650} component="h2" fz="md">
        {HEADINGS[workload.status]}
        {explanation !== "" && `: ${explanation}`}
      </Text>
      <Text fz="sm" style={{ overflowWrap: "anywhere", whiteSpace: "pre-line" }}>
        {workload.message || "The scheduler has said nothing about it yet."}
      </Text>
      <Text fz="xs" c="var(--kw-muted)" className="kw-number">
        {workload.reason !== "" && <Code>{workload.reason}</Code>}
        {position !== undefined && position !== null && ` number ${formatCount(position)} in its queue ·`}
        {waited !== null && ` waiting for ${formatDuration(waited)}`}
        {retry !== null && ` · may be tried again in ${formatDuration(retry)}`}
      </Text>
      {workload.reason === "WaitingForDevices" && (
        <Moves namespace={workload.namespace} name={workload.name} />
      )}
    </section>
  );
}

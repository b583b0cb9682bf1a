/** The states of flows and of their jobs in words, and why a job of a flow waits. */
import { t } from "@lingui/core/macro";
import type { FlowJob, JobFlow } from "@/api/jobs/job-flows";
import type { BadgeDotProps } from "@/components/badge-dot";
import { explainPendingReason, startsAfter } from "@/lib/words/pending-reason";

export function flowLook(phase: JobFlow["phase"]): BadgeDotProps {
  switch (phase) {
    case "Succeed":
      return { label: t`Succeeded`, color: "gray", hint: t`All its jobs have succeeded.` };
    case "Failed":
      return {
        label: t`Failed`,
        color: "red",
        hint: t`A job has failed or was cancelled: no further job of the flow starts.`,
      };
    case "Running":
      return { label: t`Running`, color: "teal", hint: t`A job runs or has succeeded.` };
    case "Terminating":
      return { label: t`Terminating`, color: "orange", hint: t`Its jobs are being deleted.` };
    default:
      return { label: t`Pending`, color: "yellow", hint: t`No job has started.` };
  }
}

export function jobLook(phase: FlowJob["phase"]): BadgeDotProps {
  switch (phase) {
    case "Completed":
      return { label: t`Succeeded`, color: "gray" };
    case "Running":
      return { label: t`Running`, color: "teal" };
    case "Failed":
      return { label: t`Failed`, color: "red" };
    case "Terminated":
      return { label: t`Cancelled`, color: "red" };
    case "Pending":
      return { label: t`Pending`, color: "yellow", hint: t`It waits for quota, or for its pods to start.` };
    default:
      return { label: t`Waiting`, color: "blue", hint: t`It waits for earlier jobs of the flow.` };
  }
}

/** Why a job has not started; empty for one that has. */
export function whyItWaits(flow: Pick<JobFlow, "phase">, job: FlowJob): string {
  if (job.phase === "Pending") return explainPendingReason(job.reason);
  if (job.phase !== "Waiting") return "";
  if (flow.phase === "Failed") return t`A job of the flow has failed: no further job starts.`;
  return startsAfter(job.waits_for);
}

/** "3 succeeded, 1 running": the jobs of a flow by their states, those first that are furthest. */
export function stepsText(flow: JobFlow): string {
  const waiting = flow.waiting_jobs.length + flow.pending_jobs.length;
  const failed = flow.failed_jobs.length + flow.terminated_jobs.length;
  const parts = [
    [flow.completed_jobs.length, t`succeeded`],
    [flow.running_jobs.length, t`running`],
    [waiting, t`waiting`],
    [failed, t`failed`],
  ] as const;
  return parts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(", ");
}

/** The LocalQueues of its jobs. */
export function queuesOf({ jobs }: JobFlow): string[] {
  return [...new Set(jobs.map(({ local_queue }) => local_queue).filter((name) => name !== ""))].sort();
}

/** When the first of its jobs was submitted. */
export function submittedAt({ jobs }: JobFlow): string | null {
  return jobs.map(({ created_at }) => created_at).sort()[0] ?? null;
}

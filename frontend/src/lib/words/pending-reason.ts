/** The reasons of waiting (Kueue's tokens and our own) in plain words. The token stays beside them: it is what users look up. */

import { t } from "@lingui/core/macro";

export const PENDING_REASONS = [
  "PendingEvaluation",
  "NoMatchingFlavor",
  "ExceedsMaxQuota",
  "WaitingForQuota",
  "WaitingForDevices",
  "WaitingForNodes",
  "WaitingForUserLimit",
  "WaitingForPlannedStart",
  "WaitingForReservation",
  "TopologyPlacementFailed",
  "WaitingForPreemptedWorkloads",
  "Misconfigured",
  "Suspended",
  "WaitingForPodsReady",
  "AdmissionGated",
  "OnHold",
  "Deactivated",
  "PodGroupIncomplete",
] as const;

const sentences = (): Record<(typeof PENDING_REASONS)[number], string> => ({
  PendingEvaluation: t`The scheduler has not evaluated it yet.`,
  NoMatchingFlavor: t`No flavor of its queue matches its pods.`,
  ExceedsMaxQuota: t`It requests more than its queue can ever have.`,
  WaitingForQuota: t`Its queue does not have enough free quota.`,
  WaitingForDevices: t`Its queue has quota, but no node has the requested devices free.`,
  WaitingForNodes: t`Its queue has quota, but no node has room for its pods.`,
  WaitingForUserLimit: t`Its user would exceed a limit of the queue or of a cohort above it.`,
  WaitingForPlannedStart: t`It would fit, but it would delay the planned start of a workload before it.`,
  WaitingForReservation: t`It needs nodes that a reservation keeps free.`,
  TopologyPlacementFailed: t`Its queue has quota, but no topology domain has room for it.`,
  WaitingForPreemptedWorkloads: t`Preempted workloads are still stopping.`,
  Misconfigured: t`Its queue is missing or misconfigured, or its requests are not allowed.`,
  Suspended: t`Its queue is stopped.`,
  WaitingForPodsReady: t`Another workload's pods must be ready first.`,
  AdmissionGated: t`Its admission gate is closed.`,
  OnHold: t`It is on hold.`,
  Deactivated: t`It was deactivated.`,
  PodGroupIncomplete: t`Pods of its group are missing.`,
});

const short = (): Record<(typeof PENDING_REASONS)[number], string> => ({
  PendingEvaluation: t`not evaluated yet`,
  NoMatchingFlavor: t`no matching flavor`,
  ExceedsMaxQuota: t`above max. quota`,
  WaitingForQuota: t`no quota free`,
  WaitingForDevices: t`no devices free`,
  WaitingForNodes: t`no room on nodes`,
  WaitingForUserLimit: t`user at limit`,
  WaitingForPlannedStart: t`would delay a plan`,
  WaitingForReservation: t`nodes reserved`,
  TopologyPlacementFailed: t`no room in topology`,
  WaitingForPreemptedWorkloads: t`preempting others`,
  Misconfigured: t`misconfigured`,
  Suspended: t`queue stopped`,
  WaitingForPodsReady: t`waits for other pods`,
  AdmissionGated: t`gated`,
  OnHold: t`on hold`,
  Deactivated: t`on hold`,
  PodGroupIncomplete: t`pod group incomplete`,
});

/** Any reason in two or three words; one that is not known here by the words of its name. */
export function shortReason(reason: string): string {
  const known = PENDING_REASONS.find((each) => each === reason);
  return known === undefined ? reason.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase() : short()[known];
}

/** The meaning of a reason; empty for an unknown one. */
export function explainPendingReason(reason: string): string {
  const known = PENDING_REASONS.find((each) => each === reason);
  return known === undefined ? "" : sentences()[known];
}

const GATED = "Admission is gated by: ";
const JOB_GATE = "job.kueueweb.io/";

/** `jobs` as in `kueueweb.io/start-after`: names, some after `afterany:` or `after:`. */
export function startsAfter(jobs: readonly string[]): string {
  const names = jobs.map((job) => job.slice(job.lastIndexOf(":") + 1));
  return t`It starts after ${names.join(", ")}.`;
}

/** The sentence for a message that names the gates of jobs and no other; null for any other message. */
export function startsAfterGates(message: string): string | null {
  if (!message.startsWith(GATED)) return null;
  const gates = message.slice(GATED.length).replace(/\.$/, "").split(",");
  if (!gates.every((gate) => gate.startsWith(JOB_GATE))) return null;
  return startsAfter(gates.map((gate) => gate.slice(JOB_GATE.length)));
}

/** The reasons of waiting (Kueue's tokens and our own) in plain words. The token stays beside them: it is what users look up. */

const SENTENCES: Record<string, string> = {
  PendingEvaluation: "The scheduler has not looked at it yet.",
  NoMatchingFlavor: "No flavor of its queue suits its pods.",
  ExceedsMaxQuota: "It asks for more than its queue could ever have.",
  WaitingForQuota: "Its queue has no quota left for it now.",
  WaitingForDevices: "There is quota in its queue, but no cards that it may have.",
  TopologyPlacementFailed: "There is quota, but no topology domain holds it.",
  WaitingForPreemptedWorkloads: "Room is being made: preempted workloads are still stopping.",
  Misconfigured: "Its queue is missing or not set up for it, or what it asks for is not allowed.",
  Suspended: "Its queue is stopped.",
  WaitingForPodsReady: "Another workload's pods must be ready first.",
  AdmissionGated: "A gate on it is closed.",
  OnHold: "It is on hold.",
  Deactivated: "It was deactivated.",
  PodGroupIncomplete: "Pods of its group are missing.",
};

/** What the reason means, or an empty text for one that is not known here. */
export function explainPendingReason(reason: string): string {
  return SENTENCES[reason] ?? "";
}

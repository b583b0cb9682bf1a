/** The reasons of waiting (Kueue's tokens and our own) in plain words. The token stays beside them: it is what users look up. */

export const PENDING_SENTENCES: Readonly<Record<string, string>> = {
  PendingEvaluation: "The scheduler has not evaluated it yet.",
  NoMatchingFlavor: "No flavor of its queue suits its pods.",
  ExceedsMaxQuota: "It asks for more than its queue could ever have.",
  WaitingForQuota: "Its queue has no quota left for it now.",
  WaitingForDevices: "Its queue has quota, but no node has the devices that it asks for.",
  WaitingForNodes: "Its queue has quota, but no node has room for its pods.",
  TopologyPlacementFailed: "Its queue has quota, but no topology domain has room for it.",
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
  return PENDING_SENTENCES[reason] ?? "";
}

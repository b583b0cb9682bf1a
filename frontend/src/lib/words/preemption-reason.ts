/** Why a workload lost its quota to another one, in plain words. */
import { t } from "@lingui/core/macro";
import { shortReason } from "./pending-reason";

const words = (): Record<string, string> => ({
  InClusterQueue: t`precedence in the queue`,
  InCohortReclamation: t`quota reclaimed`,
  InCohortFairSharing: t`fair sharing`,
  InCohortReclaimWhileBorrowing: t`reclaimed while borrowing`,
});

/** A reason that is not known here by the words of its name. */
export function preemptionReason(reason: string): string {
  return words()[reason] ?? shortReason(reason);
}

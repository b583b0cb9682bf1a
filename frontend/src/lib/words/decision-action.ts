/** The actions of the scheduler's decision log: labels and colours. */
import { t } from "@lingui/core/macro";
import type { StatusLook } from "./workload-state";

type Look = Pick<StatusLook, "label" | "color">;

const looks = (): Record<string, Look> => ({
  Admit: { label: t`Admitted`, color: "teal" },
  Preempt: { label: t`Preempted`, color: "orange" },
  Evict: { label: t`Evicted`, color: "orange" },
  Inadmissible: { label: t`Inadmissible`, color: "yellow" },
  Skip: { label: t`Skipped`, color: "gray" },
  ReplaceNode: { label: t`Node replaced`, color: "blue" },
  Requeue: { label: t`Requeued`, color: "yellow" },
  Finish: { label: t`Finished`, color: "gray" },
});

/** The actions that the scheduler takes by itself: the choices of a filter. */
export const DECISION_ACTIONS = ["Admit", "Preempt", "Evict", "Inadmissible", "Skip", "ReplaceNode"] as const;

export function decisionLook(action: string): Look {
  return looks()[action] ?? { label: action, color: "gray" };
}

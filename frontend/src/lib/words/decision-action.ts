/** The actions of the scheduler's decision log: labels and colours. */
import type { StatusLook } from "./workload-status";

type Look = Pick<StatusLook, "label" | "color">;

const LOOKS: Record<string, Look> = {
  Admit: { label: "Admitted", color: "teal" },
  Preempt: { label: "Preempted", color: "orange" },
  Evict: { label: "Evicted", color: "orange" },
  Inadmissible: { label: "Inadmissible", color: "yellow" },
  Skip: { label: "Skipped", color: "gray" },
  ReplaceNode: { label: "Node replaced", color: "blue" },
  Requeue: { label: "Requeued", color: "yellow" },
  Finish: { label: "Finished", color: "gray" },
};

/** The actions that the scheduler takes by itself: the choices of a filter. */
export const DECISION_ACTIONS = ["Admit", "Preempt", "Evict", "Inadmissible", "Skip", "ReplaceNode"] as const;

export function decisionLook(action: string): Look {
  return LOOKS[action] ?? { label: action, color: "gray" };
}

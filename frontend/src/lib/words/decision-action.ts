/** The actions of the scheduler's decision log: labels and colours. */
import { t } from "@lingui/core/macro";
import { formatDuration } from "../time";
import { shortReason } from "./pending-reason";
import { preemptionReason } from "./preemption-reason";
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

interface Decided {
  action: string;
  reason: string;
  /** The API's details: of an admission how long the workload waited, and the flavors of its pod sets. */
  detail: Readonly<Record<string, unknown>>;
}

/** Why, in a few words: of an admission the wait before it and the flavors, of all else the reason. */
export function whyInShort({ action, reason, detail }: Decided): string {
  if (action === "Preempt") return preemptionReason(reason);
  if (action !== "Admit") return reason === "" ? "" : shortReason(reason);
  const { waited_seconds: waited, pod_sets: podSets } = detail;
  const flavors = Array.isArray(podSets) ? new Set(podSets.flatMap(flavorsOf)) : new Set<string>();
  const words = typeof waited === "number" ? [t`waited ${formatDuration(waited)}`] : [];
  return [...words, ...flavors].join(" · ");
}

function flavorsOf(podSet: { flavors?: Record<string, string> }): string[] {
  return Object.values(podSet.flavors ?? {});
}

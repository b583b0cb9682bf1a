/** The states of a node: labels, colours and meaning, defined here and nowhere else. */
import { t } from "@lingui/core/macro";
import type { StatusLook } from "./workload-state";

export const NODE_STATES = ["ready", "cordoned", "draining", "not-ready"] as const;
export type NodeState = (typeof NODE_STATES)[number];

export const nodeStateLooks = (): Record<NodeState, StatusLook> => ({
  ready: { label: t`Ready`, color: "teal", meaning: t`Accepts new pods.` },
  cordoned: {
    label: t`Cordoned`,
    color: "yellow",
    meaning: t`Accepts no new pods; running pods continue.`,
  },
  draining: {
    label: t`Draining`,
    color: "orange",
    meaning: t`Accepts no new pods; workloads placed here are evicted.`,
  },
  "not-ready": {
    label: t`Not ready`,
    color: "red",
    meaning: t`The cluster reports that the node is not ready.`,
  },
});

export interface NodeFlags {
  ready: boolean;
  /** The cluster's own cordon. */
  unschedulable: boolean;
  cordoned: boolean;
  draining: boolean;
}

/** The cordons of kueueweb's admins; the cluster's own cordon is apart. */
export type CordonState = "cordoned" | "draining" | undefined;

export function cordonState({ cordoned, draining }: Pick<NodeFlags, "cordoned" | "draining">): CordonState {
  if (draining) return "draining";
  return cordoned ? "cordoned" : undefined;
}

/** The state that matters most: a node that does not answer, then one that is emptied, then one that is closed. */
export function nodeState({ ready, unschedulable, cordoned, draining }: NodeFlags): NodeState {
  if (!ready) return "not-ready";
  if (draining) return "draining";
  return cordoned || unschedulable ? "cordoned" : "ready";
}

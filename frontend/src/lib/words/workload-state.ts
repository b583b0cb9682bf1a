/** The states of a workload: their labels, colours and meaning, defined here and nowhere else. */

import { t } from "@lingui/core/macro";

export const WORKLOAD_STATES = [
  "Pending",
  "OnHold",
  "QuotaReserved",
  "Starting",
  "Running",
  "Evicted",
  "Succeeded",
  "Failed",
  "Finished",
] as const;
export type WorkloadState = (typeof WORKLOAD_STATES)[number];

export interface StatusLook {
  label: string;
  /** A colour name of the theme. */
  color: string;
  meaning: string;
}

const looks = (): Record<WorkloadState, StatusLook> => ({
  Pending: { label: t`Pending`, color: "yellow", meaning: t`Waits in its queue for quota and devices.` },
  OnHold: {
    label: t`On hold`,
    color: "gray",
    meaning: t`Held back by a user: it is not scheduled until it is released.`,
  },
  QuotaReserved: {
    label: t`Quota reserved`,
    color: "blue",
    meaning: t`Holds quota and waits for its admission checks.`,
  },
  Starting: {
    label: t`Starting`,
    color: "blue",
    meaning: t`Holds quota and devices; not all of its pods are ready.`,
  },
  Running: { label: t`Running`, color: "teal", meaning: t`Holds quota and devices; its pods are ready.` },
  Evicted: {
    label: t`Evicted`,
    color: "orange",
    meaning: t`Lost its admission; its pods are being stopped.`,
  },
  Succeeded: {
    label: t`Succeeded`,
    color: "gray",
    meaning: t`Its pods succeeded; its quota and devices are free.`,
  },
  Failed: { label: t`Failed`, color: "red", meaning: t`Its pods failed; its quota and devices are free.` },
  Finished: {
    label: t`Ended`,
    color: "gray",
    meaning: t`It was cancelled or replaced, or its owner was deleted; its quota and devices are free.`,
  },
});

export function isWorkloadState(value: unknown): value is WorkloadState {
  return typeof value === "string" && (WORKLOAD_STATES as readonly string[]).includes(value);
}

/** How to show a state; one that this page does not know is shown by its own name. */
export function stateLook(state: string): StatusLook {
  return isWorkloadState(state) ? looks()[state] : { label: state, color: "gray", meaning: "" };
}

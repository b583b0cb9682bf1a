/** The statuses of a workload: their labels, colours and meaning, defined here and nowhere else. */

import { t } from "@lingui/core/macro";

export const WORKLOAD_STATUSES = ["Pending", "QuotaReserved", "Admitted", "Evicted", "Finished"] as const;
export type WorkloadStatus = (typeof WORKLOAD_STATUSES)[number];

export interface StatusLook {
  label: string;
  /** A colour name of the theme. */
  color: string;
  meaning: string;
}

const looks = (): Record<WorkloadStatus, StatusLook> => ({
  Pending: { label: t`Pending`, color: "yellow", meaning: t`Waits in its queue for quota and devices.` },
  QuotaReserved: {
    label: t`Quota reserved`,
    color: "blue",
    meaning: t`Holds quota and waits for its admission checks.`,
  },
  Admitted: { label: t`Admitted`, color: "teal", meaning: t`Holds quota and devices; its pods may run.` },
  Evicted: {
    label: t`Evicted`,
    color: "orange",
    meaning: t`Lost its admission; its pods are being stopped.`,
  },
  Finished: {
    label: t`Finished`,
    color: "gray",
    meaning: t`Its pods have ended; its quota and devices are free.`,
  },
});

export function isWorkloadStatus(value: unknown): value is WorkloadStatus {
  return typeof value === "string" && (WORKLOAD_STATUSES as readonly string[]).includes(value);
}

/** How to show a status; one that this page does not know is shown by its own name. */
export function statusLook(status: string): StatusLook {
  return isWorkloadStatus(status) ? looks()[status] : { label: status, color: "gray", meaning: "" };
}

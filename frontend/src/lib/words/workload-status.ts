/** The statuses of a workload: their labels, colours and meaning, defined here and nowhere else. */

export const WORKLOAD_STATUSES = ["Pending", "QuotaReserved", "Admitted", "Evicted", "Finished"] as const;
export type WorkloadStatus = (typeof WORKLOAD_STATUSES)[number];

export interface StatusLook {
  label: string;
  /** A colour name of the theme. */
  color: string;
  meaning: string;
}

const LOOKS: Record<WorkloadStatus, StatusLook> = {
  Pending: { label: "Pending", color: "yellow", meaning: "Waits in its queue for quota and devices." },
  QuotaReserved: {
    label: "Quota reserved",
    color: "blue",
    meaning: "Holds quota and waits for its admission checks.",
  },
  Admitted: { label: "Admitted", color: "teal", meaning: "Holds quota and devices; its pods may run." },
  Evicted: { label: "Evicted", color: "orange", meaning: "Lost its admission; its pods are being stopped." },
  Finished: { label: "Finished", color: "gray", meaning: "Its pods ended; it holds nothing." },
};

export function isWorkloadStatus(value: unknown): value is WorkloadStatus {
  return typeof value === "string" && (WORKLOAD_STATUSES as readonly string[]).includes(value);
}

/** How to show a status; one that this page does not know is shown by its own name. */
export function statusLook(status: string): StatusLook {
  return isWorkloadStatus(status) ? LOOKS[status] : { label: status, color: "gray", meaning: "" };
}

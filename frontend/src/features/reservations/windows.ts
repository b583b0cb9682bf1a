/** The windows of a calendar, by reservation, in words. */
import { t } from "@lingui/core/macro";
import type { ReservationWindow } from "@/api/hardware/reservations";
import { formatMinute } from "@/lib/time";

export interface Reservation {
  name: string;
  /** In the order of their starts; at least one. */
  windows: ReservationWindow[];
  /** The open or next window, or else the last one. */
  present: ReservationWindow;
}

/** The reservations in the order of their open or next windows. */
export function reservationsOf(windows: readonly ReservationWindow[]): Reservation[] {
  const found = new Map<string, ReservationWindow[]>();
  for (const window of windows)
    found.set(window.reservation, [...(found.get(window.reservation) ?? []), window]);
  return [...found].flatMap(([name, own]) => {
    const present = own.find(({ state }) => state !== "Ended") ?? own.at(-1);
    return present === undefined ? [] : [{ name, windows: own, present }];
  });
}

type State = ReservationWindow["state"];

export const stateWords = (): Record<State, { label: string; color: string; hint: string }> => ({
  Planned: { label: t`Planned`, color: "indigo", hint: t`Its window has not started.` },
  Active: { label: t`Active`, color: "teal", hint: t`Its nodes are kept free now.` },
  Busy: {
    label: t`Busy`,
    color: "orange",
    hint: t`Its window has started, but workloads that are not allowed still use its nodes.`,
  },
  Ended: { label: t`Ended`, color: "gray", hint: t`Its window is over.` },
});

/** "26 Nov, 08:00 – 12:00" */
export function windowText({ starts_at, ends_at }: Pick<ReservationWindow, "starts_at" | "ends_at">): string {
  return `${formatMinute(starts_at)} – ${formatMinute(ends_at, starts_at)}`;
}

export function recurrenceText(recurrence: ReservationWindow["recurrence"]): string {
  if (recurrence === "Daily") return t`each day`;
  return recurrence === "Weekly" ? t`each week` : "";
}

/** The workloads that may use the nodes, as short texts; none for maintenance, null for what the reader may not see. */
export function allowedTexts({ allowed, maintenance }: ReservationWindow): string[] | null {
  if (maintenance) return [];
  if (allowed === null) return null;
  const { namespaces, local_queues, cluster_queues, users } = allowed;
  return [
    ...namespaces.map((name) => t`namespace ${name}`),
    ...local_queues.map((name) => t`LocalQueue ${name}`),
    ...cluster_queues.map((name) => t`ClusterQueue ${name}`),
    ...users.map((name) => t`user ${name}`),
  ];
}

/** The events of which a user can be notified, in words. */

import { t } from "@lingui/core/macro";

const EVENTS = {
  WorkloadStarted: { color: "green" },
  WorkloadPreempted: { color: "orange" },
  WorkloadFailed: { color: "red" },
  WorkloadWaits: { color: "yellow", minutes: 30 },
  QueueStarved: { color: "orange", minutes: 30 },
  DeviceFailed: { color: "red" },
  SchedulerSilent: { color: "red", minutes: 1 },
  DevicesIdle: { color: "yellow", minutes: 30, percent: 10 },
  QuotaUsed: { color: "orange", minutes: 10, percent: 90 },
  ShareBelow: { color: "orange", minutes: 30, percent: 50 },
} as const satisfies Record<string, { color: string; minutes?: number; percent?: number }>;

export type NotificationEvent = keyof typeof EVENTS;

export const NOTIFICATION_EVENTS = Object.keys(EVENTS) as NotificationEvent[];

export function eventLook(event: NotificationEvent): { label: string; color: string } {
  const labels: Record<NotificationEvent, string> = {
    WorkloadStarted: t`My workload has started`,
    WorkloadPreempted: t`My workload was preempted`,
    WorkloadFailed: t`My workload has failed`,
    WorkloadWaits: t`My workload waits too long`,
    QueueStarved: t`A queue is starved`,
    DeviceFailed: t`A GPU has failed`,
    SchedulerSilent: t`The scheduler is silent`,
    DevicesIdle: t`A GPU is held and idle`,
    QuotaUsed: t`A queue's quota is nearly used up`,
    ShareBelow: t`A queue gets less than its share while workloads wait`,
  };
  return { label: labels[event], color: EVENTS[event].color };
}

/** The minutes that a rule about the event begins with; null where it is told at once. */
export function usualMinutes(event: NotificationEvent): number | null {
  const found = EVENTS[event];
  return "minutes" in found ? found.minutes : null;
}

/** The percentage that a rule about the event begins with; null for an event without a threshold. */
export function usualPercent(event: NotificationEvent): number | null {
  const found = EVENTS[event];
  return "percent" in found ? found.percent : null;
}

/** The meaning of an event's percentage. */
export function percentLabel(event: NotificationEvent): string {
  if (event === "DevicesIdle") return t`Busy less than, in %`;
  if (event === "QuotaUsed") return t`Used at least, in % of the nominal quota`;
  return t`Used less than, in % of its share`;
}

/** Whether a rule about the event may be limited to one queue. */
export function concernsQueue(event: NotificationEvent): boolean {
  return event !== "DeviceFailed" && event !== "SchedulerSilent" && event !== "DevicesIdle";
}

/** The page of a notification: only pages of ours. */
export function pageOf(path: string): string {
  return /^\/(?![/\\])/.test(path) ? path : "/";
}

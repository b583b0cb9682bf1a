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
} as const satisfies Record<string, { color: string; minutes?: number }>;

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
  };
  return { label: labels[event], color: EVENTS[event].color };
}

/** The minutes that a rule about the event begins with; null where it is told at once. */
export function usualMinutes(event: NotificationEvent): number | null {
  const found = EVENTS[event];
  return "minutes" in found ? found.minutes : null;
}

/** Whether a rule about the event may be limited to one queue. */
export function concernsQueue(event: NotificationEvent): boolean {
  return event !== "DeviceFailed" && event !== "SchedulerSilent";
}

/** The page of a notification: only pages of ours. */
export function pageOf(path: string): string {
  return /^\/(?![/\\])/.test(path) ? path : "/";
}

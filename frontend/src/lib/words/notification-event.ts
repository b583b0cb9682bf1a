/** What a user can be told about, in words. */

export const EVENT_WORDS = {
  WorkloadStarted: { label: "My workload has started", color: "green" },
  WorkloadPreempted: { label: "My workload was preempted", color: "orange" },
  WorkloadFailed: { label: "My workload has failed", color: "red" },
  WorkloadWaits: { label: "My workload waits too long", color: "yellow", minutes: 30 },
  QueueStarved: { label: "A queue is starved", color: "orange", minutes: 30 },
  DeviceFailed: { label: "A GPU has failed", color: "red" },
  SchedulerSilent: { label: "The scheduler is silent", color: "red", minutes: 1 },
} as const satisfies Record<string, { label: string; color: string; minutes?: number }>;

export type NotificationEvent = keyof typeof EVENT_WORDS;

export const NOTIFICATION_EVENTS = Object.keys(EVENT_WORDS) as NotificationEvent[];

/** The minutes that a rule about the event begins with; null where it is told at once. */
export function usualMinutes(event: NotificationEvent): number | null {
  const words = EVENT_WORDS[event];
  return "minutes" in words ? words.minutes : null;
}

/** Whether a rule about the event may be limited to one queue. */
export function concernsQueue(event: NotificationEvent): boolean {
  return event !== "DeviceFailed" && event !== "SchedulerSilent";
}

/** Where a notification leads: only pages of ours. */
export function pageOf(path: string): string {
  return /^\/(?![/\\])/.test(path) ? path : "/";
}

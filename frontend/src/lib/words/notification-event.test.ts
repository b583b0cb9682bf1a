import { expect, test } from "vitest";
import { concernsQueue, NOTIFICATION_EVENTS, pageOf, usualMinutes } from "./notification-event";

test("what takes time has minutes, and what happens at once has none", () => {
  const timed = NOTIFICATION_EVENTS.filter((event) => usualMinutes(event) !== null);
  expect(timed).toEqual([
    "WorkloadWaits",
    "QueueStarved",
    "SchedulerSilent",
    "DevicesIdle",
    "QuotaUsed",
    "ShareBelow",
  ]);
});

test("hardware and the scheduler belong to no queue", () => {
  expect(concernsQueue("DeviceFailed")).toBe(false);
  expect(concernsQueue("QueueStarved")).toBe(true);
});

test("a notification leads to a page of ours alone", () => {
  expect(pageOf("/workloads/a/b")).toBe("/workloads/a/b");
  expect(pageOf("//evil.example.org")).toBe("/");
  expect(pageOf("https://evil.example.org")).toBe("/");
});

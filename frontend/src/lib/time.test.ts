import { expect, it } from "vitest";
import { formatAge, formatAgo, formatDuration, secondsBetween } from "./time";

it.each([
  [0, "0s"],
  [59.9, "59s"],
  [60, "1m"],
  [200, "3m 20s"],
  [7500, "2h 5m"],
  [3600, "1h"],
  [349_200, "4d 1h"],
  [-3, "0s"],
])("%d seconds are %s", (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

it.each([
  [59.9, "59s"],
  [637, "10m"],
  [7500, "2h"],
  [349_200, "4d"],
])("%d seconds are %s in one unit", (seconds, text) => {
  expect(formatAge(seconds)).toBe(text);
});

it("says how long ago, and does not go below zero when our clock is behind", () => {
  const now = Date.parse("2026-11-20T10:00:00Z");
  expect(formatAgo("2026-11-20T09:59:30Z", now)).toBe("30s ago");
  expect(formatAgo("2026-11-20T10:00:30Z", now)).toBe("just now");
});

it("counts to now while something lasts", () => {
  const now = Date.parse("2026-11-20T10:00:00Z");
  expect(secondsBetween("2026-11-20T09:59:00Z", null, now)).toBe(60);
  expect(secondsBetween("2026-11-20T09:59:00Z", "2026-11-20T09:59:10Z", now)).toBe(10);
  expect(secondsBetween(null, null, now)).toBeNull();
});

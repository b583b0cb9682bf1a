import { expect, it } from "vitest";
import {
  boundedRange,
  lengthOf,
  minuteOf,
  parseTimeRange,
  parseWorkloadTimeRange,
  toLocalInput,
  withBounds,
  withoutTime,
  workloadTimeQuery,
} from "./time-range";

const NOW = Date.parse("2026-01-05T09:00:00Z");

it("takes a range that ends now, and which time it is of", () => {
  expect(parseTimeRange({ last: "24h" })).toEqual({ last: "24h" });
  expect(parseWorkloadTimeRange({ last: "1h", time: "finished" })).toEqual({ last: "1h", time: "finished" });
  expect(parseWorkloadTimeRange({ time: "finished" })).toEqual({});
});

it("writes equal ranges equally", () => {
  const range = { since: "2026-01-05T10:00:00+02:00", time: "submitted", until: "" };
  expect(parseTimeRange(range)).toEqual({ since: "2026-01-05T08:00:00.000Z" });
});

it("leaves out what is no range", () => {
  expect(parseTimeRange({ last: "3w", since: "yesterday", time: "admitted" })).toEqual({});
  expect(parseTimeRange({ last: "7d", since: "2026-01-05T08:00:00Z" })).toEqual({ last: "7d" });
});

it("asks the API for the time that is meant", () => {
  expect(workloadTimeQuery({ last: "24h" }, NOW)).toEqual({ since: "2026-01-04T09:00:00.000Z" });
  expect(workloadTimeQuery({ time: "admitted", last: "1h" }, NOW)).toEqual({
    admitted_since: "2026-01-05T08:00:00.000Z",
  });
  expect(workloadTimeQuery({ time: "finished", until: "2026-01-05T08:00:00.000Z" }, NOW)).toEqual({
    finished_until: "2026-01-05T08:00:00.000Z",
  });
  expect(workloadTimeQuery({}, NOW)).toEqual({});
});

it("shows a time in the reader's zone, and reads it back", () => {
  const iso = "2026-01-05T08:07:00.000Z";
  expect(new Date(toLocalInput(iso)).toISOString()).toBe(iso);
  expect(toLocalInput(undefined)).toBe("");
});

it("leaves the page's own default out of the URL", () => {
  expect(parseTimeRange({ last: "1h" }, "1h")).toEqual({});
  expect(parseTimeRange({ last: "6h" }, "1h")).toEqual({ last: "6h" });
  expect(parseTimeRange({ last: "toString" }, "1h")).toEqual({});
});

it("gives charts and reports a range with a beginning", () => {
  const until = "2026-01-05T08:00:00.000Z";
  expect(boundedRange({}, "1h")).toEqual({ last: "1h" });
  expect(boundedRange({ until }, "1h")).toEqual({ since: "2026-01-05T07:00:00.000Z", until });
  expect(lengthOf({ since: "2026-01-05T07:00:00.000Z", until }, NOW)).toBe(3_600);
  expect(lengthOf({ since: until }, NOW)).toBe(3_600);
});

it("hands the filters of a list over with the bounds of their range", () => {
  const filters = { action: "Preempt", last: "1h" as const };
  expect(withBounds(filters, NOW)).toEqual({ action: "Preempt", since: "2026-01-05T08:00:00.000Z" });
  expect(withoutTime(filters)).toEqual({ action: "Preempt" });
});

it("knows the minute of a time", () => {
  expect(minuteOf(Date.parse("2026-01-05T14:05:59.9Z") / 1000)).toEqual({
    since: "2026-01-05T14:05:00.000Z",
    until: "2026-01-05T14:06:00.000Z",
  });
});

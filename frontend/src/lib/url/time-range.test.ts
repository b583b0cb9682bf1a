import { expect, it } from "vitest";
import { parseTimeRange, timeQuery, toLocalInput } from "./time-range";

const NOW = Date.parse("2026-01-05T09:00:00Z");

it("takes a range that ends now, and which time it is of", () => {
  expect(parseTimeRange({ last: "24h" })).toEqual({ last: "24h" });
  expect(parseTimeRange({ last: "1h", time: "finished" })).toEqual({ last: "1h", time: "finished" });
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
  expect(timeQuery({ last: "24h" }, NOW)).toEqual({ since: "2026-01-04T09:00:00.000Z" });
  expect(timeQuery({ time: "admitted", last: "1h" }, NOW)).toEqual({
    admitted_since: "2026-01-05T08:00:00.000Z",
  });
  expect(timeQuery({ time: "finished", until: "2026-01-05T08:00:00.000Z" }, NOW)).toEqual({
    finished_until: "2026-01-05T08:00:00.000Z",
  });
  expect(timeQuery({}, NOW)).toEqual({});
});

it("shows a time in the reader's zone, and reads it back", () => {
  const iso = "2026-01-05T08:07:00.000Z";
  expect(new Date(toLocalInput(iso)).toISOString()).toBe(iso);
  expect(toLocalInput(undefined)).toBe("");
});

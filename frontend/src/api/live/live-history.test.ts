import { expect, it } from "vitest";
import type { LiveData } from "@/api/types";
import { EMPTY_LIVE_DATA } from "./live-data";
import { LiveHistory } from "./live-history";

const START = Date.parse("2026-11-20T10:00:00Z");

function record(history: LiveHistory, seconds: number, pending: number): void {
  const data: LiveData = { ...EMPTY_LIVE_DATA, totals: { ...EMPTY_LIVE_DATA.totals, pending } };
  history.record(new Date(START + seconds * 1000).toISOString(), data);
}

it("has one point a second, with the latest that was known of it", () => {
  const history = new LiveHistory();
  record(history, 0, 1);
  record(history, 0.3, 5);
  record(history, 1, 2);
  expect(history.times.map((time) => time - START / 1000)).toEqual([0, 1]);
  expect(history.values.pending).toEqual([5, 2]);
  expect(history.version).toBe(3);
});

it("breaks the line once, and starts over behind the break", () => {
  const history = new LiveHistory();
  history.breakLine();
  record(history, 0, 1);
  history.breakLine();
  history.breakLine();
  record(history, 0.6, 9);
  record(history, 8, 3);
  expect(history.values.pending).toEqual([1, null, 3]);
});

it("thins out when it grows long, and keeps the first and the latest", () => {
  const history = new LiveHistory();
  for (let second = 0; second < 10_000; second += 1) record(history, second, second);
  expect(history.times.length).toBeLessThan(2_500);
  expect(history.values.pending[0]).toBe(0);
  expect(history.values.pending.at(-1)).toBeGreaterThan(9_990);
  expect(history.times).toEqual(history.times.toSorted((a, b) => a - b));
});

it("leaves out a time that is none", () => {
  const history = new LiveHistory();
  history.record("soon", EMPTY_LIVE_DATA);
  expect(history.times).toEqual([]);
});

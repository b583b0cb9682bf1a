import { expect, test } from "vitest";
import type { History } from "@/api/history";
import { joinTail, keyOf, lastKnownTime } from "./history-series";

function history(values: (number | null)[]): History {
  const line = {
    metric: "pending" as const,
    name: "",
    flavor: "",
    resource: "",
    reason: "",
    unit: "workloads",
    values,
  };
  const times = values.map((_, place) => 100 + 15 * place);
  return { since: "", until: "", step: 15, times, series: [line] };
}

const live = (time: number, value: number) => ({
  time,
  values: new Map([[keyOf({ metric: "pending" }), value]]),
});

test("live points follow the last step that is known, and those before it are left out", () => {
  const joined = joinTail(history([1, 2, null]), [live(110, 9), live(118, 5), live(131, 6)]);
  expect(joined.times).toEqual([100, 115, 118, 131]);
  expect(joined.find({ metric: "pending" })).toEqual([1, 2, 5, 6]);
});

test("a gap stays a gap", () => {
  const joined = joinTail(history([1, null, 3]), []);
  expect(joined.find({ metric: "pending" })).toEqual([1, null, 3]);
});

test("without any history the live points stand alone behind an empty past", () => {
  expect(lastKnownTime(history([null, null]))).toBe(-Infinity);
  const joined = joinTail(history([null, null]), [live(200, 4)]);
  expect(joined.times).toEqual([100, 115, 200]);
  expect(joined.find({ metric: "pending" })).toEqual([null, null, 4]);
  expect(joined.find({ metric: "admitted" })).toBeUndefined();
});

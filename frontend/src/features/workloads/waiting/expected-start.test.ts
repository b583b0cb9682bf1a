import { expect, it } from "vitest";
import type { ExplainedWorkload } from "@/api/types";
import { expectedWords, overtakenWords } from "./expected-start";

type Expected = ExplainedWorkload["expected_start"];

const expected = (change: Partial<Expected>) => ({
  expected_start: {
    at: "2026-01-01T00:12:00Z",
    seconds: 720,
    reason: "",
    basis: "",
    window_seconds: 3600,
    admitted: 30,
    overtaken_by: 0,
    ahead: 5,
    ...change,
  } satisfies Expected,
});

const words = (change: Partial<Expected>) => expectedWords(expected(change));

it("is an estimate with its basis", () => {
  expect(words({})).toBe(
    "Estimated start: about 12 min, at the rate of the last hour (30 workloads admitted from its ClusterQueue, where it is number 6).",
  );
  expect(words({ seconds: 3 * 3600 })).toContain("about 3 h");
  expect(words({ seconds: 80 * 3600 })).toContain("about 3 days");
  expect(words({ seconds: 10, window_seconds: 600 })).toContain(
    "about 1 min, at the rate of the last 10 minutes",
  );
});

it("says why there is none", () => {
  const none = { at: null, seconds: null };
  expect(words({ ...none, reason: "NothingAdmitted" })).toContain("admitted no workload lately");
  expect(words({ ...none, reason: "DecidedElsewhere" })).toContain("another scheduler decides");
  expect(words({ ...none, reason: "HoldsQuota" })).toBe("");
});

it("gives no estimate to a workload that has no place, or that others overtake", () => {
  const none = { at: null, seconds: null, overtaken_by: 37 };
  expect(words({ ...none, reason: "NoPlace" })).toContain("room on nodes");
  expect(words({ ...none, reason: "Overtaken" })).toContain("overtake it");
  expect(overtakenWords(expected({ ...none, reason: "NoPlace" }))).toBe(
    "37 workloads that were queued later overtook it in the last hour",
  );
  expect(overtakenWords(expected({ ...none, overtaken_by: 1, window_seconds: 600 }))).toBe(
    "1 workload that was queued later has overtaken it",
  );
  expect(overtakenWords(expected({}))).toBe("");
  expect(overtakenWords(expected({ overtaken_by: null }))).toBe("");
});

it("names no pace for what fits now", () => {
  expect(words({ seconds: 0, admitted: null, ahead: 0 })).toContain("one of the next cycles");
});

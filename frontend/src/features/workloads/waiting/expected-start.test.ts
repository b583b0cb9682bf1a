import { expect, it } from "vitest";
import type { ExplainedWorkload } from "@/api/types";
import { expectedWords } from "./expected-start";

type Expected = ExplainedWorkload["expected_start"];

const words = (change: Partial<Expected>) =>
  expectedWords({
    expected_start: {
      at: "2026-01-01T00:12:00Z",
      seconds: 720,
      reason: "",
      basis: "",
      window_seconds: 3600,
      admitted: 30,
      ahead: 5,
      ...change,
    },
  });

it("is an estimate with its basis", () => {
  expect(words({})).toBe(
    "Estimated start: about 12 min, at the pace of the last hour (30 admitted from its ClusterQueue, number 6 in it).",
  );
  expect(words({ seconds: 3 * 3600 })).toContain("about 3 h");
  expect(words({ seconds: 80 * 3600 })).toContain("about 3 days");
  expect(words({ seconds: 10, window_seconds: 600 })).toContain(
    "about 1 min, at the pace of the last 10 minutes",
  );
});

it("says why there is none", () => {
  const none = { at: null, seconds: null };
  expect(words({ ...none, reason: "NothingAdmitted" })).toContain("nothing was admitted");
  expect(words({ ...none, reason: "DecidedElsewhere" })).toContain("another scheduler decides");
  expect(words({ ...none, reason: "HoldsQuota" })).toBe("");
});

it("names no pace for what fits now", () => {
  expect(words({ seconds: 0, admitted: null, ahead: 0 })).toContain("one of the next cycles");
});

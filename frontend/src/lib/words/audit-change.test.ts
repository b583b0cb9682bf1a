import { expect, test } from "vitest";
import { changesOf } from "./audit-change";

test("nested fields are named by their path", () => {
  const before = { quotas: { "a100 cpu": { nominal_quota: 10 } }, labels: {} };
  const after = { quotas: { "a100 cpu": { nominal_quota: 20 } }, labels: { team: "a" } };
  expect(changesOf(before, after)).toEqual([
    { field: "labels.team", after: '"a"' },
    { field: "quotas.a100 cpu.nominal_quota", before: "10", after: "20" },
  ]);
});

test("what was created has no state before", () => {
  expect(changesOf(null, { name: "x" })).toEqual([{ field: "name", after: '"x"' }]);
});

import { expect, test } from "vitest";
import type { PreviewedWorkload } from "@/api/types";
import { costWords, outlookOf } from "./preview";

const workload = (state: string, message: string) =>
  ({
    namespace: "a",
    name: "train",
    pod_sets: [{ name: "main", count: 1, requests: { "nvidia.com/gpu": "9" } }],
    explanation: { state, message, rule: "Validation", flavors: [], remedy: "" },
    costs: [],
  }) as unknown as PreviewedWorkload;

test("it says whether it would start now, and why not", () => {
  expect(outlookOf(workload("FitsNow", "fits")).text).toBe("train would start now");
  expect(outlookOf(workload("Waits", "No quota.")).text).toBe("train would wait");
  expect(outlookOf(workload("Waits", "No quota.")).why).toBe("No quota.");
  expect(outlookOf(workload("CannotStart", "Too much."))).toEqual({
    text: "train could never start",
    color: "red",
    why: "It cannot start. Too much.",
    remedy: "",
  });
});

test("it says what an hour costs in each flavor", () => {
  const costs = [{ pod_sets: ["main"], flavor: "a100", per_hour: 1.25, is_upper_bound: true }];
  expect(costWords({ ...workload("FitsNow", ""), costs }, "EUR")).toEqual([
    "at most 1.25 EUR per hour in a100: a slice costs its share",
  ]);
});

import { expect, it } from "vitest";
import { planOf } from "./consequences";

it.each([
  ["hold", { end: ["x/a", "x/b"] }],
  ["cancel", { end: ["x/a", "x/b"] }],
  ["requeue", { requeue: ["x/a"] }],
  ["release", null],
  ["priority", { priorities: ["x/a", "x/b"].map((workload) => ({ workload, class: "high" })) }],
] as const)("%s is the plan %o", (kind, plan) => {
  const workload = (name: string, status: "Admitted" | "Pending" | "Finished") => ({
    namespace: "x",
    name,
    status,
    pod_sets: [],
  });
  const all = [workload("a", "Admitted"), workload("b", "Pending"), workload("c", "Finished")];
  expect(planOf(kind, all, "high")).toEqual(plan);
});

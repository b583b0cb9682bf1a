import { expect, it } from "vitest";
import { parseDecisionFilters } from "./decision-filters";

it("takes what the API knows and leaves out what is empty or unknown", () => {
  expect(parseDecisionFilters({ action: "Preempt", workload: 7, namespace: " ", color: "red" })).toEqual({
    action: "Preempt",
    workload: "7",
  });
  expect(parseDecisionFilters({ action: "Admit", last: "6h" })).toEqual({ action: "Admit", last: "6h" });
});

import { expect, it } from "vitest";
import { whyInShort } from "./decision-action";

it("says of an admission how long it waited, and each flavor once", () => {
  const detail = {
    waited_seconds: 125,
    pod_sets: [
      { name: "main", flavors: { cpu: "v100-32gb", "nvidia.com/gpu": "v100-32gb" } },
      { name: "driver", flavors: { cpu: "any" } },
    ],
  };
  expect(whyInShort({ action: "Admit", reason: "Admitted", detail })).toBe("waited 2m 5s · v100-32gb · any");
});

it("says nothing of an admission of which nothing is known", () => {
  expect(whyInShort({ action: "Admit", reason: "Admitted", detail: {} })).toBe("");
});

it("says of a preemption by which rule the room was made", () => {
  expect(whyInShort({ action: "Preempt", reason: "InCohortReclamation", detail: {} })).toBe(
    "quota reclaimed",
  );
  expect(whyInShort({ action: "Preempt", reason: "BrandNew", detail: {} })).toBe("brand new");
});

it("says the reason of a refusal as lists do", () => {
  expect(whyInShort({ action: "Inadmissible", reason: "WaitingForQuota", detail: {} })).toBe("no quota free");
});

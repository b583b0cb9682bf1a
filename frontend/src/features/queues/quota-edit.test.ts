import { expect, it } from "vitest";
import type { ResourceGroup } from "@/api/types";
import { fieldOfPath, invalidQuantities, sortFaults, withField } from "./quota-edit";

const GROUPS: ResourceGroup[] = [
  {
    covered_resources: ["cpu", "nvidia.com/gpu"],
    flavors: [
      {
        name: "v100",
        resources: [
          { name: "cpu", nominal_quota: "10", borrowing_limit: null, lending_limit: "2" },
          { name: "nvidia.com/gpu", nominal_quota: "8", borrowing_limit: "4", lending_limit: null },
        ],
      },
    ],
  },
];

it.each([
  ["spec.resourceGroups[0].flavors[1].resources[2].nominalQuota", "0.1.2.nominal_quota"],
  ["resource_groups[0].flavors[0].resources[1].borrowing_limit", "0.0.1.borrowing_limit"],
  ["resource_groups.3.flavors.0.resources.10.lending_limit", "3.0.10.lending_limit"],
  ["spec.resourceGroups[0].flavors[1].name", null],
  ["spec.cohort", null],
])("finds the field of %s", (path, key) => {
  expect(fieldOfPath(path)).toBe(key);
});

it("gives each field its fault and keeps the others", () => {
  const { fields, others } = sortFaults([
    {
      path: "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
      rule: "must be <= nominalQuota",
      remedy: "lower it",
    },
    { path: "spec.cohort", rule: "is no name", remedy: "" },
  ]);
  expect([...fields]).toEqual([["0.0.0.lending_limit", "must be <= nominalQuota – lower it"]]);
  expect(others.map(({ path }) => path)).toEqual(["spec.cohort"]);
});

it("says which quantities are none", () => {
  expect(invalidQuantities(GROUPS).size).toBe(0);
  const faults = invalidQuantities(withField(GROUPS, [0, 0, 1], "nominal_quota", "10GB"));
  expect([...faults.keys()]).toEqual(["0.0.1.nominal_quota"]);
});

it("changes a copy, and takes an empty limit as none", () => {
  const changed = withField(GROUPS, [0, 0, 0], "lending_limit", "");
  expect(changed[0]?.flavors[0]?.resources[0]?.lending_limit).toBeNull();
  expect(GROUPS[0]?.flavors[0]?.resources[0]?.lending_limit).toBe("2");
});

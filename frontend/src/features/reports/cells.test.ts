import { expect, it } from "vitest";
import type { Report } from "@/api/reports";
import { barsOf, hoursOf, ofResource, resourcesOf } from "./cells";

const REPORT: Report = {
  since: "2026-01-01T00:00:00Z",
  until: "2026-01-31T00:00:00Z",
  columns: [
    { name: "user", title: "User", kind: "text" },
    { name: "resource", title: "Resource", kind: "text" },
    { name: "hours", title: "Hours of one unit", kind: "hours" },
  ],
  rows: [
    ["ada", "device", 3],
    ["ada", "nvidia.com/gpumem", 90_000],
    ["bob", "cpu", 12],
    ["bob", "device", 5],
  ],
  totals: {},
  currency: "",
  by: ["user"],
};

it("names the resources of a report, GPUs first", () => {
  expect(resourcesOf(REPORT)).toEqual(["device", "nvidia.com/gpumem", "cpu"]);
  expect(resourcesOf({ ...REPORT, columns: [] })).toEqual([]);
});

it("compares hours of one resource only, the largest first", () => {
  expect(barsOf(ofResource(REPORT, "device"), "hours")).toEqual([
    { label: "bob", value: 5 },
    { label: "ada", value: 3 },
  ]);
});

it("calls an hour by its unit", () => {
  expect(["device", "cpu", "memory", "nvidia.com/gpumem"].map(hoursOf)).toEqual([
    "GPU-hours",
    "Core-hours",
    "GiB-hours of memory",
    "Hours of nvidia.com/gpumem",
  ]);
});

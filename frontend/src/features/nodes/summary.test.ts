import { expect, it } from "vitest";
import type { Node } from "@/api/types";
import { amountsOf, countNodeStates, fullness, matchesNodeFilters, nodeRow, sortNodes } from "./summary";

function node(name: string, change: Partial<Node> = {}): Node {
  return {
    cluster: "default",
    name,
    labels: { zone: "a", gpu: "on" },
    taints: [],
    ready: true,
    conditions: [],
    unschedulable: false,
    cordoned: false,
    draining: false,
    capacity: {},
    allocatable: { cpu: "8", memory: "64Gi", pods: "110" },
    foreign_usage: {},
    requested: { cpu: "500m", pods: "3" },
    flavors: ["a100"],
    device_totals: {
      devices: 8,
      slots: 80,
      used_slots: 0,
      memory_mib: 1000,
      used_memory_mib: 0,
      cores_percent: 800,
      used_cores_percent: 0,
    },
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
    ...change,
  };
}

it("puts what is asked for beside what there is, in base units", () => {
  const allocatable = { "nvidia.com/gpu": "80", cpu: "8", memory: "64Gi", pods: "110" };
  const requested = { cpu: "500m", "nvidia.com/gpu": "2", "nvidia.com/gpumem": "4000" };
  const amounts = amountsOf(node("n", { allocatable, requested }));
  expect(amounts).toEqual([
    { resource: "cpu", requested: 500, total: 8000 },
    { resource: "memory", requested: 0, total: 64 * 2 ** 30 },
    { resource: "pods", requested: 0, total: 110 },
    { resource: "nvidia.com/gpu", requested: 2, total: 80 },
  ]);
  expect(amounts.map(fullness)).toEqual([0.0625, 0, 0, 0.025]);
  expect(amountsOf(node("n", { allocatable: {}, requested }))[0]).toEqual({
    resource: "cpu",
    requested: 500,
    total: null,
  });
});

it("finds nodes by name, state, flavor and label", () => {
  const row = nodeRow(node("gpu-1", { cordoned: true }));
  expect(matchesNodeFilters(row, {})).toBe(true);
  expect(matchesNodeFilters(row, { search: "gpu", state: "cordoned", flavor: "a100", label: "zone=a" })).toBe(
    true,
  );
  expect(matchesNodeFilters(row, { label: "gpu" })).toBe(true);
  expect(matchesNodeFilters(row, { label: "zone=b" })).toBe(false);
  expect(matchesNodeFilters(row, { state: "ready" })).toBe(false);
  expect(matchesNodeFilters(row, { flavor: "h100" })).toBe(false);
});

it("sorts by a column either way, and by name where they are equal or the column is not known", () => {
  const rows = [node("n10"), node("n2", { requested: { cpu: "8" } }), node("n1")].map(nodeRow);
  const names = (sort?: string) => sortNodes(rows, sort).map((row) => row.node.name);
  expect(names()).toEqual(["n1", "n2", "n10"]);
  expect(names("-cpu")).toEqual(["n2", "n1", "n10"]);
  expect(names("cpu")).toEqual(["n1", "n10", "n2"]);
  expect(names("bogus")).toEqual(["n1", "n2", "n10"]);
});

it("counts what matters most of each node", () => {
  const rows = [node("a", { ready: false, cordoned: true }), node("b", { draining: true }), node("c")].map(
    nodeRow,
  );
  expect([...countNodeStates(rows)]).toEqual([
    ["not-ready", 1],
    ["draining", 1],
    ["ready", 1],
  ]);
});

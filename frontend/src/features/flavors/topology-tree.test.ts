import { expect, it } from "vitest";
import type { Node } from "@/api/types";
import { domainsOf, heldOf } from "./topology-tree";

const HOST = "kubernetes.io/hostname";

function node(name: string, labels: Record<string, string>, used: number): Node {
  return {
    name,
    labels,
    ready: true,
    allocatable: { cpu: "8" },
    requested: { cpu: "1500m" },
    device_totals: { memory_mib: 100, used_memory_mib: used },
  } as unknown as Node;
}

const NODES = [
  node("n10", { block: "b1", rack: "r1" }, 10),
  node("n2", { block: "b1", rack: "r1" }, 100),
  node("n3", { block: "b1", rack: "r2" }, 0),
  node("n4", { block: "b2", rack: "r1" }, 50),
  node("stray", { block: "b2" }, 0),
];

it("adds up what the domains of each level have and hold, and leaves out who lacks a label", () => {
  const [first, second] = domainsOf(NODES, ["block", "rack", HOST], "gpu-memory");
  expect(first).toMatchObject({ name: "b1", used: 110, total: 300, freest: 100 });
  expect(first?.children.map(({ name, used, total }) => [name, used, total])).toEqual([
    ["r1", 110, 200],
    ["r2", 0, 100],
  ]);
  expect(first?.children[0]?.nodes.map(({ name }) => name)).toEqual(["n2", "n10"]);
  // Racks of two blocks may have one name.
  expect(second).toMatchObject({ name: "b2", used: 50, total: 100 });
  expect(second?.children[0]?.path).toEqual(["b2", "r1"]);
});

it("counts nothing as free on nodes that take no pods", () => {
  const closed = NODES.map((each) => (each.name === "n3" ? { ...each, cordoned: true } : each));
  const [first] = domainsOf(closed, ["block", HOST], "gpu-memory");
  expect(first).toMatchObject({ used: 110, total: 300, free: 90, freest: 90 });
});

it("knows other resources, in base units", () => {
  expect(heldOf(NODES[0] as Node, "cpu")).toEqual({ used: 1500, total: 8000 });
  expect(heldOf(NODES[0] as Node, "pods")).toEqual({ used: 0, total: 0 });
});

it("has no domain above the hosts where the hosts are the only level", () => {
  expect(domainsOf(NODES, [HOST], "cpu")).toEqual([]);
});

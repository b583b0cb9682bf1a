import { expect, it } from "vitest";
import type { LiveDevice, LiveSlice } from "@/api/types";
import {
  candidateNodes,
  countStates,
  type DeviceEntry,
  groupByNode,
  headroom,
  nodeFaults,
  tenants,
} from "./summary";

function slice(namespace: string | null, memory: number, cores = 0): LiveSlice {
  return {
    workload: namespace === null ? null : `${namespace}/job`,
    namespace,
    pod_set: "main",
    replica: 0,
    container: "train",
    memory_mib: memory,
    cores_percent: cores,
  };
}

function entry(
  node: string,
  index: number,
  slices: LiveSlice[] = [],
  change: Partial<LiveDevice> = {},
): DeviceEntry {
  const device: LiveDevice = {
    node,
    index,
    type: "V100",
    vendor: "NVIDIA",
    health: true,
    cordoned: false,
    node_unschedulable: false,
    draining: false,
    slots: 10,
    used_slots: slices.length,
    memory_mib: 32_768,
    used_memory_mib: slices.reduce((sum, each) => sum + each.memory_mib, 0),
    cores_percent: 100,
    used_cores_percent: slices.reduce((sum, each) => sum + each.cores_percent, 0),
    units: { device: "device", parts: "slots", cores_unit: "%", cores: 100, used_cores: 0 },
    slices,
    ...change,
  };
  return { uuid: `${node}-${index}`, device };
}

it("orders nodes and devices as people count", () => {
  const groups = groupByNode([entry("node-10", 0), entry("node-2", 1), entry("node-2", 0)]);
  expect(groups.map(({ node, entries }) => [node, ...entries.map(({ uuid }) => uuid)])).toEqual([
    ["node-2", "node-2-0", "node-2-1"],
    ["node-10", "node-10-0"],
  ]);
});

it("finds the nodes of flavors, the emptiest first", () => {
  const entries = [
    entry("full", 0, [slice("a", 10)]),
    entry("half", 0),
    entry("half", 1, [slice("a", 10)]),
    entry("half", 2, [], { health: false }),
    entry("empty", 0),
    entry("empty", 1),
    entry("other", 0),
  ];
  const devices = Object.fromEntries(entries.map(({ uuid, device }) => [uuid, device]));
  const nodes = ["full", "half", "empty", "other", "cpu"].map((name) => ({
    name,
    flavors: [name === "other" ? "b" : "a"],
  }));
  const found = candidateNodes(nodes, devices, ["a", "c"]);
  expect(found.map(({ group, free }) => [group.node, free])).toEqual([
    ["empty", 2],
    ["half", 1],
    ["full", 0],
  ]);
});

it("names what keeps pods off a node", () => {
  const well = { ready: true, unschedulable: false, cordoned: false, draining: false };
  const nodes = [
    { ...well, name: "a" },
    { ...well, name: "b", unschedulable: true },
    { ...well, name: "c", ready: false, unschedulable: true },
    { ...well, name: "d", cordoned: true },
    { ...well, name: "e", cordoned: true, draining: true },
  ];
  expect(Object.fromEntries(nodeFaults(nodes))).toEqual({
    b: "cordoned in the cluster",
    c: "not ready",
    d: "cordoned",
    e: "draining",
  });
});

it("adds up tenants over all devices, and keeps foreign slices apart", () => {
  const entries = [
    entry("a", 0, [slice("research", 8192), slice(null, 1024)]),
    entry("a", 1, [slice("research", 4096)]),
  ];
  expect(tenants(entries)).toEqual([
    { namespace: "research", memoryMib: 12_288, slices: 2 },
    { namespace: null, memoryMib: 1024, slices: 1 },
  ]);
});

it("counts the states of the devices", () => {
  const entries = [
    entry("a", 0),
    entry("a", 1, [slice("x", 100)]),
    entry("a", 2, [slice("x", 32_768)]),
    entry("a", 3, [], { health: false }),
  ];
  expect(countStates(entries)).toEqual({ free: 1, shared: 1, full: 1, cordoned: 0, unhealthy: 1 });
});

it("finds what is left: whole devices, and pieces of shared ones", () => {
  const entries = [
    entry("a", 0, [slice("x", 20_000, 30)]),
    entry("a", 1, [slice("x", 10_000, 60)]),
    entry("a", 2, [slice("x", 1_000, 100)]),
    entry("a", 3, [], { health: false }),
  ];
  expect(headroom(entries)).toEqual([
    {
      type: "V100",
      devices: 4,
      wholeFree: 0,
      freeMib: 12_768 + 22_768,
      freeOnSharedMib: 12_768 + 22_768,
    },
  ]);
  expect(headroom([entry("b", 0)])[0]).toMatchObject({ wholeFree: 1, freeOnSharedMib: 0, freeMib: 32_768 });
});

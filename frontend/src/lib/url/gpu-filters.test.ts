import { describe, expect, it } from "vitest";
import {
  type FilterableDevice,
  gpuState,
  idleDevices,
  matchesGpuFilters,
  parseGpuFilters,
} from "./gpu-filters";

const CARD: FilterableDevice = {
  node: "gpu-node-3",
  type: "NVIDIA-A100",
  vendor: "NVIDIA",
  health: true,
  cordoned: false,
  node_unschedulable: false,
  slots: 10,
  used_slots: 2,
  memory_mib: 81_920,
  used_memory_mib: 24_576,
  cores_percent: 100,
  used_cores_percent: 50,
  slices: [{ namespace: "research" }, { namespace: null }],
};

it("reads the filters of a URL and leaves out what it does not know", () => {
  expect(
    parseGpuFilters({ vendor: "NVIDIA", node: " gpu ", state: "melted", view: "compact", x: 1 }),
  ).toEqual({
    vendor: "NVIDIA",
    node: "gpu",
    view: "compact",
  });
});

it("reads from a link that only idle devices are wanted", () => {
  expect(parseGpuFilters({ idle: true })).toEqual({ idle: true });
  expect(parseGpuFilters({ idle: "perhaps" })).toEqual({});
});

it("counts as idle a device that is held and measured to do nothing", () => {
  const devices = { busy: CARD, idle: CARD, free: { ...CARD, used_slots: 0 }, unmeasured: CARD };
  const usage = [
    { uuid: "busy", utilization_percent: 40 },
    { uuid: "idle", utilization_percent: 0.4 },
    { uuid: "free", utilization_percent: 0 },
    { uuid: "unmeasured", utilization_percent: null },
  ];
  expect([...(idleDevices(devices, usage) ?? [])]).toEqual(["idle"]);
  expect(idleDevices(devices, [])).toBeNull();
});

describe("the state of a device", () => {
  it.each([
    ["shared", {}],
    ["free", { used_slots: 0, used_memory_mib: 0, used_cores_percent: 0 }],
    ["full", { used_slots: 10 }],
    ["full", { used_memory_mib: 81_920 }],
    ["full", { used_cores_percent: 100 }],
    ["unhealthy", { health: false, cordoned: true }],
    ["cordoned", { cordoned: true }],
    ["cordoned", { node_unschedulable: true }],
  ])("%s: %o", (state, change) => {
    expect(gpuState({ ...CARD, ...change })).toBe(state);
  });
});

it.each([
  [true, {}],
  [true, { vendor: "NVIDIA", type: "NVIDIA-A100", state: "shared" as const }],
  [true, { node: "node-3" }],
  [false, { node: "node-4" }],
  [true, { namespace: "research" }],
  [false, { namespace: "production" }],
  [false, { state: "free" as const }],
])("matches (%s) %o", (matches, filters) => {
  expect(matchesGpuFilters(CARD, filters)).toBe(matches);
});

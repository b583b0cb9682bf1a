import { expect, it } from "vitest";
import type { LiveDevice } from "@/api/types";
import { deviceSums, usageSums } from "./judgement";

const device = (change: Partial<LiveDevice>): LiveDevice => ({
  node: "n",
  index: 0,
  type: "V100",
  vendor: "NVIDIA",
  health: true,
  cordoned: false,
  node_unschedulable: false,
  draining: false,
  slots: 10,
  used_slots: 0,
  memory_mib: 100,
  used_memory_mib: 0,
  cores_percent: 100,
  used_cores_percent: 0,
  units: { device: "device", parts: "slots", cores_unit: "%", cores: 100, used_cores: 0 },
  slices: [],
  ...change,
});
const DEVICES = {
  free: device({}),
  cordoned: device({ cordoned: true }),
  ill: device({ health: false }),
  idle: device({ used_slots: 1 }),
  busy: device({ used_slots: 1 }),
  unmeasured: device({ used_slots: 1 }),
};

it("counts the free ones by type, the most first", () => {
  const devices = {
    a: device({}),
    b: device({ type: "A100" }),
    c: device({ type: "A100" }),
    held: device({ used_slots: 1 }),
    ill: device({ health: false, type: "A100" }),
  };
  expect(deviceSums(devices, []).freeByType).toEqual([
    { type: "A100", count: 2 },
    { type: "V100", count: 1 },
  ]);
});

it("counts as free only what takes slices, and as idle only what is held and was measured", () => {
  const usage = [
    { uuid: "free", utilization_percent: 0 },
    { uuid: "idle", utilization_percent: 0.5 },
    { uuid: "busy", utilization_percent: 1 },
    { uuid: "unmeasured", utilization_percent: null },
    { uuid: "gone", utilization_percent: 0 },
  ];
  expect(deviceSums(DEVICES, usage)).toEqual({
    all: 6,
    free: 1,
    freeByType: [{ type: "V100", count: 1 }],
    unhealthy: 1,
    idle: 1,
  });
});

it("says nothing of idle devices where no monitor reports", () => {
  expect(deviceSums(DEVICES, []).idle).toBeNull();
  expect(deviceSums(DEVICES, [{ uuid: "idle", utilization_percent: null }]).idle).toBeNull();
});

it("adds up what is measured, and nothing where no monitor says it", () => {
  const usage = [
    { memory_used_mib: 1_000, utilization_percent: null },
    { memory_used_mib: 500, utilization_percent: null },
    { memory_used_mib: null, utilization_percent: null },
  ];
  expect(usageSums(usage)).toEqual({ memoryMib: 1_500, busyPercent: null });
});

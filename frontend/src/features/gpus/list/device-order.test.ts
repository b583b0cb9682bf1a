import { expect, test } from "vitest";
import type { DeviceEntry } from "../summary";
import { listedDevices, sortDevices } from "./device-order";

function entry(uuid: string, node: string, index: number, used: number): DeviceEntry {
  const device = {
    node,
    index,
    type: "V100",
    vendor: "NVIDIA",
    health: true,
    cordoned: false,
    node_unschedulable: false,
    draining: false,
    slots: 10,
    used_slots: 1,
    memory_mib: 100,
    used_memory_mib: used,
    cores_percent: 100,
    used_cores_percent: 0,
    units: { device: "device", parts: "slots", cores_unit: "%", cores: 100, used_cores: 0 },
    slices: [],
  };
  return { uuid, device };
}

const entries = [entry("cold", "b", 0, 90), entry("hot", "a", 1, 10), entry("dark", "a", 0, 50)];
const usage = [
  { uuid: "cold", utilization_percent: 80, temperature_celsius: 30, power_watts: null },
  { uuid: "hot", utilization_percent: 5, temperature_celsius: 70, power_watts: 300 },
];
const rows = listedDevices("east", entries, usage);
const order = (sort: string | undefined) => sortDevices(rows, sort).map(({ uuid }) => uuid);

test("devices are sorted by a figure, those without it last in both directions", () => {
  expect(order("temperature")).toEqual(["cold", "hot", "dark"]);
  expect(order("-temperature")).toEqual(["hot", "cold", "dark"]);
  expect(order("-power")).toEqual(["hot", "dark", "cold"]);
  expect(order("use")).toEqual(["hot", "cold", "dark"]);
  expect(order("free")).toEqual(["cold", "dark", "hot"]);
});

test("without an order they stand by node and index", () => {
  expect(order(undefined)).toEqual(["dark", "hot", "cold"]);
  expect(order("-node")).toEqual(["cold", "hot", "dark"]);
});

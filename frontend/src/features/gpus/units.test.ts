import { expect, test } from "vitest";
import { deviceTitle, formatCores, formatCoresShort, sliceCores, sliceShare } from "./units";

const units = { device: "die", parts: "slots", cores_unit: "compute units", cores: 304, used_cores: 76 };

test("cores are percent, or the vendor's own unit", () => {
  expect(formatCores(units)).toBe("76 of 304 compute units");
  expect(formatCoresShort(units)).toBe("76/304");
  expect(formatCores({ ...units, cores_unit: "%", used_cores: 30 })).toBe("30 %");
  expect(formatCoresShort({ ...units, cores_unit: "%", used_cores: 30 })).toBe("30 %");
});

test("a device is called what its vendor calls it", () => {
  const device = { units, index: 3, node: "vastai-va16" } as Parameters<typeof deviceTitle>[0];
  expect(deviceTitle(device)).toBe("Die 3 of vastai-va16");
});

test("a slice without memory takes its part of the slots", () => {
  const device = { memory_mib: 1000, used_memory_mib: 0, slots: 2, used_slots: 1, slices: [{}] };
  const shown = device as unknown as Parameters<typeof sliceShare>[0];
  expect(sliceShare(shown, 0)).toBe(0.5);
  expect(sliceShare(shown, 250)).toBe(0.25);
});

test("slices share the cores that the device alone counts, by their memory", () => {
  const slices = [
    { memory_mib: 100, cores_percent: 0 },
    { memory_mib: 300, cores_percent: 0 },
  ];
  const device = { cores_percent: 0, units: { ...units, cores: 32, used_cores: 16 }, slices };
  const shown = device as unknown as Parameters<typeof sliceCores>[0];
  expect(shown.slices.map((slice) => sliceCores(shown, slice))).toEqual([0.125, 0.375]);
});

test("cores that a slice counts are its own", () => {
  const slices = [
    { memory_mib: 100, cores_percent: 30 },
    { memory_mib: 300, cores_percent: 0 },
  ];
  const device = {
    cores_percent: 100,
    units: { ...units, cores_unit: "%", cores: 100, used_cores: 30 },
    slices,
  };
  const shown = device as unknown as Parameters<typeof sliceCores>[0];
  expect(shown.slices.map((slice) => sliceCores(shown, slice))).toEqual([0.3, 0]);
});

/** Sums for the first line of the overview: free, idle and broken devices. */
import type { DeviceUsage, LiveDevice } from "@/api/types";
import { byName } from "@/lib/language";
import { gpuState, idleDevices } from "@/lib/url/gpu-filters";

export interface DeviceSums {
  all: number;
  /** No slice is held, and new ones are taken. */
  free: number;
  /** The free ones by type, the most first. */
  freeByType: { type: string; count: number }[];
  unhealthy: number;
  /** Held, and measured to do nothing; null where no monitor reports any device. */
  idle: number | null;
}

export function deviceSums(
  devices: Readonly<Record<string, LiveDevice>>,
  usage: readonly Pick<DeviceUsage, "uuid" | "utilization_percent">[],
): DeviceSums {
  const states = Object.values(devices).map(gpuState);
  const byType = new Map<string, number>();
  for (const device of Object.values(devices))
    if (gpuState(device) === "free") byType.set(device.type, (byType.get(device.type) ?? 0) + 1);
  return {
    all: states.length,
    freeByType: [...byType]
      .map(([type, count]) => ({ type, count }))
      .sort((a, b) => b.count - a.count || byName(a.type, b.type)),
    free: states.filter((state) => state === "free").length,
    unhealthy: states.filter((state) => state === "unhealthy").length,
    idle: idleDevices(devices, usage)?.size ?? null,
  };
}

/** The measured use, over all devices with a monitor; null without any. */
export function usageSums(usage: readonly Pick<DeviceUsage, "memory_used_mib" | "utilization_percent">[]) {
  const sum = (values: (number | null)[]) => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((whole, value) => whole + value, 0);
  };
  return {
    memoryMib: sum(usage.map(({ memory_used_mib: memory }) => memory)),
    busyPercent: sum(usage.map(({ utilization_percent: busy }) => busy)),
  };
}

export interface NodeOfDevices {
  node: string;
  entries: { uuid: string; device: LiveDevice }[];
}

/** Nodes by name, devices by index. */
export function devicesByNode(devices: Readonly<Record<string, LiveDevice>>): NodeOfDevices[] {
  const nodes = new Map<string, NodeOfDevices>();
  for (const [uuid, device] of Object.entries(devices)) {
    const found = nodes.get(device.node) ?? { node: device.node, entries: [] };
    found.entries.push({ uuid, device });
    nodes.set(device.node, found);
  }
  for (const { entries } of nodes.values()) entries.sort((a, b) => a.device.index - b.device.index);
  return [...nodes.values()].sort((a, b) => byName(a.node, b.node));
}

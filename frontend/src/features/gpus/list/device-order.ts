/** The orders of the list of devices. */
import { byName } from "@/lib/language";
import type { ClusterDevice, DeviceEntry, MeasuredUse } from "../summary";

export function listedDevices(
  cluster: string,
  entries: readonly DeviceEntry[],
  usage: readonly MeasuredUse[],
): ClusterDevice[] {
  const uses = new Map(usage.map((use) => [use.uuid, use]));
  return entries.map((entry) => ({ ...entry, cluster, use: uses.get(entry.uuid) }));
}

const ORDERS: Record<string, (row: ClusterDevice) => number | null> = {
  free: ({ device }) => device.memory_mib - device.used_memory_mib,
  use: ({ use }) => use?.utilization_percent ?? null,
  temperature: ({ use }) => use?.temperature_celsius ?? null,
  power: ({ use }) => use?.power_watts ?? null,
};

/** Sorts by a name of `ORDERS`, "-" before it for the largest first; by node and index without one. Devices without the figure are last. */
export function sortDevices(rows: readonly ClusterDevice[], sort: string | undefined): ClusterDevice[] {
  const isDescending = sort?.startsWith("-") ?? false;
  const sign = isDescending ? -1 : 1;
  const name = isDescending ? sort?.slice(1) : sort;
  const read = ORDERS[name ?? ""];
  const byPlace = (a: ClusterDevice, b: ClusterDevice) =>
    byName(a.device.node, b.device.node) || a.device.index - b.device.index || byName(a.uuid, b.uuid);
  if (read === undefined) return rows.toSorted((a, b) => sign * byPlace(a, b));
  return rows.toSorted((a, b) => {
    const [first, second] = [read(a), read(b)];
    if (first === null || second === null) {
      return Number(first === null) - Number(second === null) || byPlace(a, b);
    }
    return sign * (first - second) || byPlace(a, b);
  });
}

/** A device's amounts in its vendor's own words: compute units, AI cores, dies, MIG instances, DRS slices. */
import { t } from "@lingui/core/macro";
import type { LiveDevice, LiveSlice } from "@/api/types";
import { coresWord, deviceWord } from "@/lib/words/device-words";

type Units = LiveDevice["units"];

/** "30 %", or "76 of 304 compute units". */
export function formatCores({ cores_unit, cores, used_cores }: Units): string {
  return cores_unit === "%" ? `${used_cores} %` : t`${used_cores} of ${cores} ${coresWord(cores_unit)}`;
}

/** The same where room is scarce: "30 %", or "76/304". */
export function formatCoresShort({ cores_unit, cores, used_cores }: Units): string {
  return cores_unit === "%" ? `${used_cores} %` : `${used_cores}/${cores}`;
}

/** The share of a device that a slice holds, of its memory; of its slots where the slice is accounted no memory. */
export function sliceShare(device: LiveDevice, memoryMib: number): number {
  const scale = Math.max(device.memory_mib, device.used_memory_mib, 1);
  return memoryMib > 0
    ? memoryMib / scale
    : device.used_slots / Math.max(device.slots, 1) / device.slices.length;
}

/** The share of a device's cores that a slice holds. Where only the device counts them (Ascend), by memory. */
export function sliceCores(device: LiveDevice, slice: LiveSlice): number {
  const counted = device.slices.reduce((sum, each) => sum + each.cores_percent, 0);
  if (counted > 0) return slice.cores_percent / Math.max(device.cores_percent, counted);
  const memory = device.slices.reduce((sum, each) => sum + each.memory_mib, 0);
  const part = memory > 0 ? slice.memory_mib / memory : 1 / device.slices.length;
  return part * Math.min(1, device.units.used_cores / Math.max(device.units.cores, 1));
}

/** "Device 3 of gpu-node-01", or "Die 3 of vastai-va16". */
export function deviceTitle(device: LiveDevice): string {
  const word = deviceWord(device.units.device);
  const name = word.charAt(0).toUpperCase() + word.slice(1);
  return t`${name} ${device.index} of ${device.node}`;
}

/** Cards of nodes, and the slices on them. */
import type { LiveDevice } from "../src/api/types.ts";
import { NAMESPACES, TYPES } from "./fixture-names.ts";

/** Empty cards, by uuid; every third node has the larger ones. */
export function makeDevices(
  nodes: number,
  cardsPerNode: number,
  random: () => number,
): Record<string, LiveDevice> {
  const devices: Record<string, LiveDevice> = {};
  for (let node = 0; node < nodes; node += 1) {
    const kind = TYPES[node % 3 === 2 ? 1 : 0] ?? { type: "", memory: 0 };
    for (let index = 0; index < cardsPerNode; index += 1) {
      const device: LiveDevice = {
        node: `gpu-node-${String(node).padStart(2, "0")}`,
        index,
        type: kind.type,
        vendor: "NVIDIA",
        health: random() > 0.02,
        cordoned: random() > 0.98,
        node_unschedulable: false,
        draining: false,
        slots: 10,
        used_slots: 0,
        memory_mib: kind.memory,
        used_memory_mib: 0,
        cores_percent: 100,
        used_cores_percent: 0,
        slices: [],
      };
      devices[
        `GPU-${(node * 8 + index).toString(16).padStart(8, "0")}-5d3e-4a7b-9c21-${String(node).padStart(12, "0")}`
      ] = device;
    }
  }
  return devices;
}

/** Lets a card be shared, held whole, or free. */
export function fillDevices(
  devices: LiveDevice[],
  random: () => number,
  pick: <Item>(items: readonly Item[]) => Item,
): void {
  for (const device of devices) {
    const whole = random() < 0.3;
    const slices = whole ? 1 : random() < 0.2 ? 0 : 1 + Math.floor(random() * 4);
    for (let place = 0; place < slices; place += 1) {
      const namespace = pick(NAMESPACES);
      const foreign = random() < 0.06;
      device.slices.push({
        workload: foreign ? null : `${namespace}/train-${Math.floor(random() * 900) + 100}`,
        namespace: foreign ? null : namespace,
        pod_set: "main",
        replica: place,
        container: "train",
        memory_mib: whole
          ? device.memory_mib
          : Math.floor(((0.1 + random() * 0.15) * device.memory_mib) / 1024) * 1024,
        cores_percent: whole ? 100 : Math.floor(random() * 5) * 5,
      });
    }
    device.used_slots = device.slices.length;
    device.used_memory_mib = device.slices.reduce((sum, slice) => sum + slice.memory_mib, 0);
    device.used_cores_percent = device.slices.reduce((sum, slice) => sum + slice.cores_percent, 0);
  }
}

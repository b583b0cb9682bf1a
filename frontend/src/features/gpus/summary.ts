/** Sums over the live devices for the GPU page. */
import { t } from "@lingui/core/macro";
import type { Device, LiveDevice, Node } from "@/api/types";
import { byName } from "@/lib/language";
import { GPU_STATES, type GpuState, gpuState } from "@/lib/url/gpu-filters";
import { nodeState, nodeStateLooks } from "@/lib/words/node-state";

export interface DeviceEntry {
  uuid: string;
  device: LiveDevice;
}

/** A device in a list of several clusters. */
export interface ClusterDevice extends DeviceEntry {
  cluster: string;
  /** Absent without a monitor, and where the list is of several clusters. */
  use?: MeasuredUse | undefined;
}

/** The figures that the monitor of a device reports; null for a figure that it does not report. */
export interface MeasuredUse {
  uuid: string;
  utilization_percent: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
}

/** Devices as the API lists them, by cluster, node and index; `nodes` say which of them take no pods. */
export function clusterDevices(
  devices: readonly Device[],
  nodes: readonly Pick<Node, "cluster" | "name" | "unschedulable" | "cordoned" | "draining">[],
): ClusterDevice[] {
  const closed = new Set(
    nodes
      .filter(({ unschedulable, cordoned, draining }) => unschedulable || cordoned || draining)
      .map(({ cluster, name }) => `${cluster}/${name}`),
  );
  return devices
    .map((device) => {
      const { cluster, uuid, healthy: health, node } = device;
      return {
        cluster,
        uuid,
        device: { ...device, health, node_unschedulable: closed.has(`${cluster}/${node}`) },
      };
    })
    .sort(
      (a, b) =>
        byName(a.cluster, b.cluster) ||
        byName(a.device.node, b.device.node) ||
        a.device.index - b.device.index ||
        byName(a.uuid, b.uuid),
    );
}

export interface NodeGroup {
  node: string;
  entries: DeviceEntry[];
}

/** The devices by node, nodes by name, devices by index. */
export function groupByNode(entries: readonly DeviceEntry[]): NodeGroup[] {
  const groups = new Map<string, DeviceEntry[]>();
  for (const entry of entries) {
    const group = groups.get(entry.device.node);
    if (group === undefined) groups.set(entry.device.node, [entry]);
    else group.push(entry);
  }
  return [...groups]
    .map(([node, members]) => ({
      node,
      entries: members.sort((a, b) => a.device.index - b.device.index || byName(a.uuid, b.uuid)),
    }))
    .sort((a, b) => byName(a.node, b.node));
}

export interface CandidateNode {
  group: NodeGroup;
  /** Devices of which no slice is held, and that take slices. */
  free: number;
}

/** The nodes of these flavors that have devices, the emptiest first. */
export function candidateNodes(
  nodes: readonly Pick<Node, "name" | "flavors">[],
  devices: Readonly<Record<string, LiveDevice>>,
  flavors: readonly string[],
): CandidateNode[] {
  const reached = new Set(
    nodes.filter((node) => node.flavors.some((flavor) => flavors.includes(flavor))).map(({ name }) => name),
  );
  const entries = Object.entries(devices).map(([uuid, device]): DeviceEntry => ({ uuid, device }));
  return groupByNode(entries.filter(({ device }) => reached.has(device.node)))
    .map((group) => ({
      group,
      free: group.entries.filter(({ device }) => gpuState(device) === "free").length,
    }))
    .sort((a, b) => b.free - a.free || byName(a.group.node, b.group.node));
}

/** The conditions that keep pods off nodes, by the node's name; nodes that take pods are left out. */
export function nodeFaults(
  nodes: readonly Pick<Node, "name" | "ready" | "unschedulable" | "cordoned" | "draining">[],
): Map<string, string> {
  const faults = new Map<string, string>();
  for (const node of nodes) {
    const state = nodeState(node);
    if (state === "cordoned" && !node.cordoned) faults.set(node.name, t`cordoned in the cluster`);
    else if (state !== "ready") faults.set(node.name, nodeStateLooks()[state].label.toLowerCase());
  }
  return faults;
}

export interface Tenant {
  /** Null for all whose holder is not known to us. */
  namespace: string | null;
  memoryMib: number;
  slices: number;
}

/** The tenants with the memory that they hold, the largest first. */
export function tenants(entries: readonly DeviceEntry[]): Tenant[] {
  const found = new Map<string | null, Tenant>();
  for (const { device } of entries) {
    for (const slice of device.slices) {
      const namespace = slice.namespace || null;
      const tenant = found.get(namespace) ?? { namespace, memoryMib: 0, slices: 0 };
      found.set(namespace, {
        ...tenant,
        memoryMib: tenant.memoryMib + slice.memory_mib,
        slices: tenant.slices + 1,
      });
    }
  }
  return [...found.values()].sort((a, b) => b.memoryMib - a.memoryMib || b.slices - a.slices);
}

export function countStates(entries: readonly DeviceEntry[]): Record<GpuState, number> {
  const counts = Object.fromEntries(GPU_STATES.map((state) => [state, 0])) as Record<GpuState, number>;
  for (const { device } of entries) counts[gpuState(device)] += 1;
  return counts;
}

export interface Headroom {
  type: string;
  devices: number;
  /** Healthy devices without a slice in use. */
  wholeFree: number;
  freeMib: number;
  /** Free memory on shared devices: it fits slices only, never a whole device. */
  freeOnSharedMib: number;
}

/** The free amounts of each device type. An unhealthy, cordoned or full device has none. */
export function headroom(entries: readonly DeviceEntry[]): Headroom[] {
  const found = new Map<string, Headroom>();
  for (const { device } of entries) {
    const sum = found.get(device.type) ?? {
      type: device.type,
      devices: 0,
      wholeFree: 0,
      freeMib: 0,
      freeOnSharedMib: 0,
    };
    found.set(device.type, sum);
    sum.devices += 1;
    const state = gpuState(device);
    if (state !== "free" && state !== "shared") continue;
    const memoryMib = device.memory_mib - device.used_memory_mib;
    sum.freeMib += memoryMib;
    if (state === "free") sum.wholeFree += 1;
    else sum.freeOnSharedMib += memoryMib;
  }
  return [...found.values()].sort((a, b) => byName(a.type, b.type));
}

/** Each value once, sorted: the choices of a filter. */
export function distinct(entries: readonly DeviceEntry[], of: (device: LiveDevice) => string): string[] {
  return [...new Set(entries.map(({ device }) => of(device)))].sort(byName);
}

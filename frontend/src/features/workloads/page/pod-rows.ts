/** The pods of a workload, each with the slices of devices that it holds and what its containers use of them. */
import type { AllocatedDevice, ContainerSample, Pod } from "@/api/types";

export interface SliceInUse {
  container: string;
  uuid: string;
  memoryMib: number;
  coresPercent: number;
  /** The latest sample of the container on the device; null where no monitor reports it. */
  use: ContainerSample | null;
}

export interface PodRow {
  key: string;
  podSet: string;
  replica: number;
  /** null: decided, and not in the cluster yet. */
  pod: Pod | null;
  node: string;
  slices: SliceInUse[];
}

export interface PodRowsInput {
  held: readonly AllocatedDevice[];
  pods: readonly Pod[];
  samples: readonly ContainerSample[];
  /** Whether `pods` has all pods, so that a slice of no pod belongs to one that does not exist yet. */
  complete: boolean;
}

export function podRows({ held, pods, samples, complete }: PodRowsInput): PodRow[] {
  const uses = latestUses(samples);
  const present = new Set(pods.filter((pod) => !hasEnded(pod)).map(place));
  const rows = pods.map((pod): PodRow => {
    const slices = pod.devices.length > 0 || hasEnded(pod) ? pod.devices : of(held, place(pod));
    return {
      key: pod.uid,
      podSet: pod.pod_set,
      replica: pod.replica,
      pod,
      node: pod.node || (slices === pod.devices ? "" : (of(held, place(pod))[0]?.node ?? "")),
      slices: slices.map((slice) => inUse(slice, uses.get(keyOfUse(pod.name, slice)))),
    };
  });
  const missing = complete ? [...new Set(held.map(place))].filter((key) => !present.has(key)) : [];
  for (const key of missing) {
    const slices = of(held, key);
    const [first] = slices;
    if (first === undefined) continue;
    const { pod_set: podSet, replica, node } = first;
    rows.push({ key, podSet, replica, pod: null, node, slices: slices.map((slice) => inUse(slice)) });
  }
  for (const { slices } of rows) slices.sort((one, other) => one.uuid.localeCompare(other.uuid));
  return rows.sort((one, other) => one.podSet.localeCompare(other.podSet) || one.replica - other.replica);
}

function hasEnded(pod: Pod): boolean {
  return pod.phase === "Succeeded" || pod.phase === "Failed";
}

function place({ pod_set, replica }: { pod_set: string; replica: number }): string {
  return `${pod_set} ${replica}`;
}

function of(held: readonly AllocatedDevice[], key: string): AllocatedDevice[] {
  return held.filter((slice) => place(slice) === key);
}

type Slice = Pick<AllocatedDevice, "container" | "uuid" | "memory_mib" | "cores_percent">;

function inUse(slice: Slice, use: ContainerSample | null = null): SliceInUse {
  const { container, uuid, memory_mib: memoryMib, cores_percent: coresPercent } = slice;
  return { container, uuid, memoryMib, coresPercent, use };
}

function keyOfUse(pod: string, { container, uuid }: { container: string; uuid: string }): string {
  return `${pod}/${container}/${uuid}`;
}

/** The latest sample of each container on each device. */
function latestUses(samples: readonly ContainerSample[]): Map<string, ContainerSample> {
  const latest = new Map<string, ContainerSample>();
  for (const sample of samples) {
    const key = keyOfUse(sample.pod_name, sample);
    const before = latest.get(key);
    if (before === undefined || before.at < sample.at) latest.set(key, sample);
  }
  return latest;
}

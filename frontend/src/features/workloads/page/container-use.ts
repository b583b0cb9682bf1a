/** What containers use now, out of the samples of the last minutes. */
import type { AllocatedDevice, ContainerSample } from "@/api/types";

export interface ContainerUse extends ContainerSample {
  /** What the workload holds of the device for this container's pods, in MiB; null where it holds nothing of it. */
  heldMib: number | null;
}

/** The latest sample of each container on each device, by pod, container and device. */
export function latestUse(
  samples: readonly ContainerSample[],
  devices: readonly AllocatedDevice[],
): ContainerUse[] {
  const latest = new Map<string, ContainerSample>();
  for (const sample of samples) {
    const key = `${sample.pod_name}/${sample.container}/${sample.uuid}`;
    const before = latest.get(key);
    if (before === undefined || before.at < sample.at) latest.set(key, sample);
  }
  return [...latest]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([, sample]) => {
      const held = devices.find(
        ({ uuid, container }) => uuid === sample.uuid && container === sample.container,
      );
      return { ...sample, heldMib: held?.memory_mib ?? null };
    });
}

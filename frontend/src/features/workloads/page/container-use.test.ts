import { expect, it } from "vitest";
import type { AllocatedDevice, ContainerSample } from "@/api/types";
import { latestUse } from "./container-use";

function sample(at: string, pod: string, change: Partial<ContainerSample> = {}): ContainerSample {
  return {
    at: `2026-11-20T10:${at}Z`,
    pod_name: pod,
    container: "main",
    uuid: "GPU-1",
    memory_used_mib: 100,
    utilization_percent: 10,
    last_kernel_seconds: 1,
    ...change,
  };
}

const HELD = { uuid: "GPU-1", container: "main", memory_mib: 4096 } as AllocatedDevice;

it("shows the latest of each container on each device", () => {
  const samples = [
    sample("00:00", "b"),
    sample("02:00", "a", { memory_used_mib: 300 }),
    sample("01:00", "a", { memory_used_mib: 200 }),
    sample("01:00", "a", { uuid: "GPU-2", memory_used_mib: null }),
  ];
  expect(
    latestUse(samples, [HELD]).map((use) => [use.pod_name, use.uuid, use.memory_used_mib, use.heldMib]),
  ).toEqual([
    ["a", "GPU-1", 300, 4096],
    ["a", "GPU-2", null, null],
    ["b", "GPU-1", 100, 4096],
  ]);
});

import { expect, it } from "vitest";
import type { AllocatedDevice, ContainerSample, Pod } from "@/api/types";
import { podRows } from "./pod-rows";

const POD = {
  name: "train-a",
  uid: "1",
  pod_set: "main",
  replica: 0,
  phase: "Running",
  node: "n1",
  devices: [],
};
const HELD = {
  pod_set: "main",
  replica: 0,
  container: "main",
  node: "n1",
  uuid: "GPU-1",
  memory_mib: 4096,
  cores_percent: 30,
};

function rows(pods: Partial<Pod>[], samples: Partial<ContainerSample>[] = [], complete = true) {
  return podRows({
    held: [HELD, { ...HELD, replica: 1, node: "n2", uuid: "GPU-2" }] as AllocatedDevice[],
    pods: pods.map((pod) => ({ ...POD, ...pod })) as Pod[],
    samples: samples as ContainerSample[],
    complete,
  });
}

it("gives each pod the slices that were decided for it, and those without a pod a row of their own", () => {
  expect(rows([{}]).map(({ pod, node, slices }) => [pod?.name, node, slices[0]?.uuid])).toEqual([
    ["train-a", "n1", "GPU-1"],
    [undefined, "n2", "GPU-2"],
  ]);
});

it("does not miss pods of which the server has more", () => {
  expect(rows([{}], [], false)).toHaveLength(1);
});

it("believes the pod where it says what it holds, and gives an ended one nothing", () => {
  const devices = [{ uuid: "GPU-9", container: "main", memory_mib: 1, cores_percent: 0, slots: 1 }];
  const found = rows([
    { uid: "1", phase: "Failed", devices: [] },
    { uid: "2", name: "train-b", devices },
  ]);
  expect(found.map(({ pod, slices }) => [pod?.name, slices.map(({ uuid }) => uuid)])).toEqual([
    ["train-a", []],
    ["train-b", ["GPU-9"]],
    [undefined, ["GPU-2"]],
  ]);
});

it("shows the latest report of each container on each device", () => {
  const sample = { pod_name: "train-a", container: "main", uuid: "GPU-1" };
  const [row] = rows(
    [{}],
    [
      { ...sample, at: "2026-11-20T10:02:00Z", memory_used_mib: 300 },
      { ...sample, at: "2026-11-20T10:01:00Z", memory_used_mib: 200 },
      { ...sample, at: "2026-11-20T10:03:00Z", uuid: "GPU-2", memory_used_mib: 100 },
    ],
  );
  expect(row?.slices[0]?.use?.memory_used_mib).toBe(300);
});

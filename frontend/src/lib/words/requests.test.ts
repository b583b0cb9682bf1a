import { expect, it } from "vitest";
import { summarizeRequests, totalRequests } from "./requests";

const POD_SETS = [
  { count: 1, requests: { cpu: "500m", memory: "1Gi" } },
  { count: 4, requests: { cpu: "2", memory: "4Gi", "nvidia.com/gpu": "2", "nvidia.com/gpumem": "8192" } },
];

it("adds the requests of all pods", () => {
  expect(Object.fromEntries(totalRequests(POD_SETS))).toEqual({
    cpu: 8500,
    memory: 17 * 2 ** 30,
    "nvidia.com/gpu": 8,
    "nvidia.com/gpumem": 32_768,
  });
});

it("names accelerators first", () => {
  expect(summarizeRequests(POD_SETS)).toEqual(["8 GPU, 32 GiB", "8.5 CPU, 17 GiB RAM"]);
});

it("says of each unit what it is of, where the unit alone does not", () => {
  const requests = {
    "nvidia.com/gpu": "1",
    "nvidia.com/gpucores": "81",
    "nvidia.com/gpumem-percentage": "50",
    "huawei.com/Ascend910A": "2",
    "ephemeral-storage": "2Gi",
  };
  expect(summarizeRequests([{ count: 1, requests }])).toEqual([
    "2 Ascend910A, 1 GPU, 50 % of memory, 81 %",
    "2 GiB ephemeral-storage",
  ]);
});

it("has one line where there is no accelerator, and none where nothing is asked", () => {
  expect(summarizeRequests([{ count: 3, requests: { cpu: "1" } }])).toEqual(["3 CPU"]);
  expect(summarizeRequests([{ count: 3, requests: {} }])).toEqual([]);
});

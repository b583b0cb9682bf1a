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
  expect(summarizeRequests(POD_SETS)).toEqual(["8 gpu · 32 GiB gpumem", "8.5 cpu · 17 GiB memory"]);
});

it("has one line where there is no accelerator, and none where nothing is asked", () => {
  expect(summarizeRequests([{ count: 3, requests: { cpu: "1" } }])).toEqual(["3 cpu"]);
  expect(summarizeRequests([{ count: 3, requests: {} }])).toEqual([]);
});

import { expect, it } from "vitest";
import type { LiveClusterQueue, LiveQuota } from "@/api/types";
import { hottestQueues, quotaByResource } from "./summary";

function quota(resource: string, nominal: number, used: number, borrowed = 0): LiveQuota {
  return {
    flavor: "v100",
    resource,
    nominal,
    used,
    borrowed,
    deserved: null,
    borrowing_limit: null,
    lending_limit: null,
  };
}

const ACTIVE = { active: true, reason: "Ready", message: "" };

function queue(pending: number, usage: LiveQuota[], admitted = 0): LiveClusterQueue {
  return {
    cohort: "all",
    ...ACTIVE,
    pending,
    inadmissible: 0,
    reserving: 0,
    admitted,
    weighted_share: 0,
    usage,
  };
}

it("adds quotas over queues and flavors, the fullest resource first", () => {
  const queues = {
    a: queue(0, [quota("cpu", 1000, 100), quota("nvidia.com/gpu", 8, 8)]),
    b: queue(0, [quota("cpu", 1000, 100), quota("nvidia.com/gpu", 8, 10, 2)]),
  };
  expect(quotaByResource(queues)).toEqual([
    { resource: "nvidia.com/gpu", nominal: 16, used: 18, borrowed: 2 },
    { resource: "cpu", nominal: 2000, used: 200, borrowed: 0 },
  ]);
});

it("puts the queue where most wait first, then the fullest, and leaves idle ones out", () => {
  const queues = {
    idle: queue(0, [quota("cpu", 1000, 0)]),
    full: queue(2, [quota("cpu", 1000, 1000)], 1),
    long: queue(9, [quota("cpu", 1000, 10)], 1),
    half: queue(2, [quota("cpu", 1000, 500)], 1),
  };
  expect(hottestQueues(queues, 10).map(({ name }) => name)).toEqual(["long", "full", "half"]);
  expect(hottestQueues(queues, 1)).toHaveLength(1);
});

it("calls use without any quota fuller than full", () => {
  const [hot] = hottestQueues({ guest: queue(0, [quota("cpu", 0, 500, 500)], 1) }, 5);
  expect(hot?.fullest?.share).toBe(Number.POSITIVE_INFINITY);
});

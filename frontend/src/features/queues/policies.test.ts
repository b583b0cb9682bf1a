import { expect, test } from "vitest";
import type { ClusterQueue } from "@/api/types";
import { rules } from "./policies";

const QUEUE = {
  cohort: "company",
  queueing_strategy: "BestEffortFIFO",
  admission_mode: "NoAdmissionFairSharing",
  preemption: {
    within_cluster_queue: "LowerPriority",
    reclaim_within_cohort: "Any",
    borrow_within_cohort: { policy: "LowerPriority", max_priority_threshold: 100 },
  },
  flavor_fungibility: { when_can_borrow: "MayStopSearch", when_can_preempt: "TryNextFlavor", preference: "" },
  preemption_protection: { minimum_run_seconds: 600, cool_down_seconds: 0 },
  preempt_for_devices: false,
  admission_checks: [],
  resource_groups: [{ covered_resources: ["cpu"], flavors: [{ name: "v100", resources: [] }] }],
} as unknown as ClusterQueue;

const texts = (queue: ClusterQueue) => rules(queue).map(({ text }) => text);

test("the rules of a queue are sentences, each with the field that it comes from", () => {
  expect(texts(QUEUE)).toEqual([
    "Higher priorities are served first, then older workloads; a workload that fits may overtake one that does not.",
    "Workloads of lower priority are preempted in this queue.",
    "Lent quota is reclaimed from workloads of any priority.",
    "It preempts workloads up to priority 100 in order to borrow.",
    "A workload is protected from preemption for its first 10m.",
  ]);
  expect(rules(QUEUE)[1]?.field).toBe("preemption.withinClusterQueue: LowerPriority");
});

test("weights order the queue by a multifactor priority", () => {
  const weighed = { ...QUEUE, priority_weights: { age: 1000 } } as unknown as ClusterQueue;
  expect(texts(weighed)[0]).toMatch(/^Higher multifactor priorities/);
});

test("a queue with backfill says so", () => {
  const [told] = texts({ ...QUEUE, backfill: "easy" }).filter((text) => text.includes("planned start"));
  expect(told).toBe(
    "The first workload that must wait gets a planned start, which later workloads may not delay.",
  );
});

test("a queue that is never reclaimed says so", () => {
  expect(texts({ ...QUEUE, never_reclaimed: true })).toContain("Other queues do not preempt its workloads.");
});

test("rules of lending and of flavors are left out where there is no cohort and one flavor", () => {
  const alone = texts({ ...QUEUE, cohort: "" });
  expect(alone.some((text) => /Lent|borrow/.test(text))).toBe(false);
  const flavors = ["v100", "a100"].map((name) => ({ name, resources: [] }));
  const several = { ...QUEUE, resource_groups: [{ covered_resources: ["cpu"], flavors }] } as ClusterQueue;
  expect(texts(several)).toContain("It tries the next flavor before it preempts.");
});

import { describe, expect, it } from "vitest";
import type { Explanation, FlavorVerdict } from "@/api/types";
import { nearestFlavor, waitingSentence } from "./state-sentence";

const need = (resource: string, asked: number, free: number, maximum = asked) => ({
  resource,
  asked,
  nominal: maximum,
  used: 0,
  borrowable: 0,
  free,
  lacking: Math.max(0, asked - free),
  maximum,
  deserved: null,
});

const verdict = (
  flavor: string,
  rule: FlavorVerdict["rule"],
  ...resources: FlavorVerdict["resources"]
): FlavorVerdict => ({
  pod_sets: ["main"],
  flavor,
  rule,
  message: "",
  resources,
  nodes: null,
  domains: 0,
  domains_refused: {},
});

const explanation = (change: Partial<Explanation>): Explanation => ({
  state: "Waits",
  rule: "Quota",
  reason: "WaitingForQuota",
  message: "What the scheduler said.",
  remedy: "",
  cluster_queue: "q",
  strict: false,
  position: 1,
  waiting: 1,
  ahead: [],
  contenders: [],
  flavors: [],
  queue_holders: [],
  workload_holders: [],
  victims: [],
  factors: null,
  planned_start: null,
  would_delay: null,
  reservations: [],
  limit_to_start: null,
  ...change,
});

const nodes = (replica: number, all: number, other: number): FlavorVerdict["nodes"] => ({
  pod_set: "main",
  replica,
  nodes: all,
  refused: [
    { reason: "NodeNotSelected", nodes: other, devices: 0 },
    { reason: "CardInsufficientMemory", nodes: all - other, devices: 12 },
  ],
  nearest_node: "gpu-1",
  nearest_reason: "",
  message: "",
  namespace_quota: false,
});

describe("the sentence", () => {
  it("names the nearest flavor and what it lacks, with units", () => {
    const flavors = [
      verdict("far", "Quota", need("cpu", 8000, 0)),
      verdict("near", "Quota", need("cpu", 8000, 6500), need("nvidia.com/gpumem", 24_576, 0)),
      verdict("nearest", "Quota", need("cpu", 8000, 6500), need("nvidia.com/gpumem", 24_576, 12_288)),
      verdict("never", "MaximumQuota", need("cpu", 8000, 7900, 7900)),
    ];
    expect(nearestFlavor(flavors)?.flavor).toBe("nearest");
    expect(waitingSentence(explanation({ flavors }))).toBe(
      "It waits for quota: flavor nearest lacks 1.5 cpu and 12 GiB of nvidia.com/gpumem.",
    );
  });

  it("says how many pods have a place, and on how many nodes the next one has none", () => {
    const flavors = [
      { ...verdict("a100", "Devices"), nodes: nodes(0, 6, 4) },
      { ...verdict("v100", "Devices"), nodes: nodes(1, 6, 2) },
    ];
    const asked = (count: number) => [{ name: "main", count, requests: { "nvidia.com/gpu": "8", cpu: "8" } }];
    const sentence = (count: number) =>
      waitingSentence(explanation({ rule: "Devices", flavors }), asked(count));
    expect(sentence(4)).toBe(
      "It waits for 8 GPU on one node for each of its 4 pods: 1 has a place; for the next one none of the 4 nodes of flavor v100 has room.",
    );
    expect(sentence(1)).toBe("It waits for 8 GPU on one node: none of the 4 nodes of flavor v100 has room.");
  });

  it("tells one that can never start from one that waits", () => {
    const flavors = [verdict("a", "MaximumQuota", need("cpu", 99_000, 4000, 4000))];
    expect(waitingSentence(explanation({ state: "CannotStart", rule: "MaximumQuota", flavors }))).toBe(
      "It cannot start: it requests 99 cpu, and its queue can have at most 4 in flavor a.",
    );
    expect(waitingSentence(explanation({ state: "CannotStart", rule: "FlavorMatch" }))).toBe(
      "It cannot start. What the scheduler said.",
    );
    const tooLarge = [{ ...verdict("mig", "Devices"), nodes: nodes(0, 8, 7) }];
    const never = (count: number) =>
      waitingSentence(explanation({ state: "CannotStart", rule: "Devices", flavors: tooLarge }), [
        { name: "main", count, requests: { "nvidia.com/gpu": "9" } },
      ]);
    expect(never(1)).toBe(
      "It can never start: it requests 9 GPU on one node, and no node of mig has that much, even when empty.",
    );
    expect(never(2)).toBe(
      "It can never start: it requests 9 GPU on one node for each of its 2 pods, and the nodes of mig do not have that much, even when empty.",
    );
  });

  it("says when the start is planned that it would delay", () => {
    const plan = { workload: "", cluster_queue: "q", starts_at: "2026-11-29T14:05:00Z", quota: [] };
    expect(waitingSentence(explanation({ rule: "PlannedStart", would_delay: plan }))).toMatch(
      /^It would fit, but it would delay a start that is planned at Nov 29, 2026, .*:05:00/,
    );
  });

  it("counts whom it preempts", () => {
    const victims = [{ workload: "a/b", cluster_queue: "q", priority: 0, reason: "InClusterQueue" }];
    expect(waitingSentence(explanation({ state: "Preempts", victims }))).toBe(
      "It starts once 1 workload that it preempts has stopped.",
    );
  });
});

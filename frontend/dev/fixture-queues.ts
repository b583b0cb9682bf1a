/** ClusterQueues with their quotas and numbers, and the LocalQueues that lead to them. */
import type { ClusterQueue, LiveClusterQueue, LocalQueue } from "../src/api/types.ts";
import { NAMESPACES, TYPES } from "./fixture-names.ts";

/** The numbers of the ClusterQueue at a place in its cohort: one is broken, some borrow. */
export function makeLiveQueue(cohort: string, place: number, random: () => number): LiveClusterQueue {
  const usage = TYPES.flatMap(({ flavor }) => makeUsage(flavor, random));
  return {
    cohort,
    active: place !== 4,
    reason: place === 4 ? "FlavorNotFound" : "Ready",
    message: place === 4 ? "Can't admit new workloads: references missing ResourceFlavor(s): h100." : "",
    pending: Math.floor(random() * 40),
    inadmissible: Math.floor(random() * 9),
    reserving: Math.floor(random() * 30),
    admitted: Math.floor(random() * 30),
    weighted_share: Math.floor(random() * 400) / 10,
    usage,
  };
}

function makeUsage(flavor: string, random: () => number) {
  const gpus = 8 + Math.floor(random() * 3) * 8;
  const used = Math.floor(random() * (gpus + 6));
  const share = (resource: string, nominal: number, fill: number) => ({
    flavor,
    resource,
    nominal,
    borrowing_limit: random() < 0.4 ? Math.floor(nominal / 2) : null,
    lending_limit: random() < 0.3 ? Math.floor(nominal / 2) : null,
    used: Math.round(nominal * fill),
    borrowed: Math.max(0, Math.round(nominal * fill) - nominal),
  });
  return [
    share("cpu", gpus * 12_000, used / gpus),
    share("memory", gpus * 64 * 2 ** 30, (used / gpus) * 0.8),
    share("nvidia.com/gpu", gpus, used / gpus),
    share("nvidia.com/gpumem", gpus * 32_768, (used / gpus) * 0.9),
  ];
}

export function makeLocalQueue(
  place: number,
  clusterQueue: string,
  live: LiveClusterQueue,
  since: string,
): LocalQueue {
  return {
    ...metadata(since),
    fair_weight: "1",
    namespace: NAMESPACES[place % NAMESPACES.length] ?? "vision",
    name: "main",
    cluster_queue: clusterQueue,
    stop_policy: place === 3 ? "Hold" : "None",
    pending: live.pending,
    reserving: live.reserving,
    admitted: live.admitted,
    conditions: [],
  };
}

export function makeClusterQueue(
  name: string,
  cohort: string,
  live: LiveClusterQueue,
  since: string,
): ClusterQueue {
  return {
    ...metadata(since),
    name,
    cohort,
    pending: live.pending,
    reserving: live.reserving,
    admitted: live.admitted,
    namespace_selector: {},
    admission_checks: [],
    admission_mode: "NoAdmissionFairSharing",
    preempt_for_devices: false,
    preemption_protection: { minimum_run_seconds: 0, cool_down_seconds: 0 },
    queueing_strategy: "BestEffortFIFO",
    stop_policy: "None",
    fair_weight: "1",
    preemption: {
      within_cluster_queue: "LowerPriority",
      reclaim_within_cohort: "Any",
      borrow_within_cohort: { policy: "Never", max_priority_threshold: null },
    },
    flavor_fungibility: {
      when_can_borrow: "MayStopSearch",
      when_can_preempt: "TryNextFlavor",
      preference: "",
    },
    resource_groups: [
      {
        covered_resources: ["cpu", "memory", "nvidia.com/gpu", "nvidia.com/gpumem"],
        flavors: TYPES.map(({ flavor }) => ({
          name: flavor,
          resources: live.usage
            .filter((quota) => quota.flavor === flavor)
            .map((quota) => ({
              name: quota.resource,
              nominal_quota: write(quota.resource, quota.nominal),
              borrowing_limit:
                quota.borrowing_limit === null ? null : write(quota.resource, quota.borrowing_limit),
              lending_limit: quota.lending_limit === null ? null : write(quota.resource, quota.lending_limit),
            })),
        })),
      },
    ],
    conditions: [
      {
        type: "Active",
        status: "True",
        reason: "Ready",
        message: "Can admit new workloads",
        last_transition_time: since,
      },
    ],
  };
}

function write(resource: string, amount: number): string {
  if (resource === "cpu") return `${amount}m`;
  return resource === "memory" ? `${Math.floor(amount / 2 ** 30)}Gi` : String(amount);
}

/** What a cohort has and uses, from its queues. */
export function sumUsage(queues: Record<string, LiveClusterQueue>, cohort: string) {
  const sums = new Map<string, { flavor: string; resource: string; subtree_quota: number; used: number }>();
  for (const queue of Object.values(queues)) {
    if (cohort !== "company" && queue.cohort !== cohort) continue;
    for (const { flavor, resource, nominal, used } of queue.usage) {
      const key = `${flavor} ${resource}`;
      const sum = sums.get(key) ?? { flavor, resource, subtree_quota: 0, used: 0 };
      sums.set(key, { ...sum, subtree_quota: sum.subtree_quota + nominal, used: sum.used + used });
    }
  }
  return [...sums.values()];
}

function metadata(createdAt: string) {
  return {
    uid: "00000000-0000-4000-8000-000000000000",
    labels: {},
    annotations: {},
    generation: 1,
    created_at: createdAt,
    deletion_requested_at: null,
  };
}

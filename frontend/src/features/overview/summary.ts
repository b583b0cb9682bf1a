/** Sums over the live data for the overview. */
import { waiting } from "@/api/live/live-data";
import type { LiveClusterQueue, LiveQuota } from "@/api/types";
import { ownedQuota } from "@/lib/owned-quota";

export interface ResourceQuota {
  resource: string;
  nominal: number;
  used: number;
  borrowed: number;
}

/** Quota and its use over all ClusterQueues and flavors, the fullest resource first. */
export function quotaByResource(queues: Record<string, LiveClusterQueue>): ResourceQuota[] {
  const sums = new Map<string, ResourceQuota>();
  for (const queue of Object.values(queues)) {
    for (const quota of queue.usage) {
      const { resource, used, borrowed } = quota;
      const sum = sums.get(resource) ?? { resource, nominal: 0, used: 0, borrowed: 0 };
      sums.set(resource, {
        resource,
        nominal: sum.nominal + ownedQuota(quota),
        used: sum.used + used,
        borrowed: sum.borrowed + borrowed,
      });
    }
  }
  const share = ({ used, nominal }: ResourceQuota) => (nominal > 0 ? used / nominal : 0);
  return [...sums.values()].sort((a, b) => share(b) - share(a) || a.resource.localeCompare(b.resource));
}

export interface HotQueue {
  name: string;
  queue: LiveClusterQueue;
  /** The fullest of its quotas: used / nominal, above 1 when it borrows. */
  fullest: { resource: string; flavor: string; share: number } | null;
}

function shareOf(quota: LiveQuota): number {
  const { used } = quota;
  const owned = ownedQuota(quota);
  if (owned > 0) return used / owned;
  return used > 0 ? Number.POSITIVE_INFINITY : 0;
}

/** The fullest quota; between two equally full ones, the accelerator's. */
function fullest({ usage }: LiveClusterQueue): HotQueue["fullest"] {
  const accelerator = (quota: LiveQuota) => Number(quota.resource.includes("/"));
  const [top] = usage.toSorted((a, b) => shareOf(b) - shareOf(a) || accelerator(b) - accelerator(a));
  return top === undefined ? null : { resource: top.resource, flavor: top.flavor, share: shareOf(top) };
}

/** The queues that most wait in, then the fullest; idle ones are left out. */
export function hottestQueues(queues: Record<string, LiveClusterQueue>, most: number): HotQueue[] {
  return Object.entries(queues)
    .map(([name, queue]) => ({ name, queue, fullest: fullest(queue) }))
    .filter(({ queue, fullest: top }) => waiting(queue) > 0 || queue.admitted > 0 || (top?.share ?? 0) > 0)
    .sort(
      (a, b) =>
        waiting(b.queue) - waiting(a.queue) ||
        (b.fullest?.share ?? 0) - (a.fullest?.share ?? 0) ||
        a.name.localeCompare(b.name),
    )
    .slice(0, most);
}

/** How one quota of a ClusterQueue divides, in base units of its resource. */
import { t } from "@lingui/core/macro";
import type { ClusterQueue, LiveQuota } from "@/api/types";
import { ownedQuota } from "@/lib/owned-quota";
import { formatAmountShort } from "@/lib/quantity";

export interface QuotaSegments {
  /** Used of its own nominal quota. */
  own: number;
  borrowed: number;
  /** Idle quota that the cohort may take: all that is idle, or as much as the lending limit leaves. */
  lendable: number;
  /** The length of the bar: up to the borrowing limit where there is one, and never less than what is used. */
  scale: number;
}

export function quotaSegments(quota: LiveQuota): QuotaSegments {
  const { nominal, used, borrowed, lending_limit: lendingLimit, borrowing_limit: borrowingLimit } = quota;
  const owned = ownedQuota(quota);
  const own = Math.max(0, used - borrowed);
  const idle = Math.max(0, owned - own);
  return {
    own,
    borrowed,
    lendable: Math.min(idle, lendingLimit ?? idle),
    scale: Math.max(nominal + (borrowingLimit ?? 0), owned, used),
  };
}

/** How a quota follows the nodes of its flavor, in words; null where it is fixed. */
export function following(queue: ClusterQueue, flavor: string, resource: string): string | null {
  const found = queue.node_quotas.find((cell) => cell.flavor === flavor && cell.resource === resource);
  if (found === undefined) return null;
  return found.headroom === "0"
    ? t`${found.share} of the nodes`
    : t`${found.share} of the nodes, less ${found.headroom}`;
}

/** The whole truth about one quota, one line each. */
export function describeQuota(quota: LiveQuota): string {
  const amount = (value: number) => formatAmountShort(quota.resource, value);
  const { lendable, own } = quotaSegments(quota);
  const limit = (value: number | null) => (value === null ? t`no limit` : amount(value));
  return [
    t`${quota.resource} of flavor ${quota.flavor}`,
    quota.deserved === null
      ? t`nominal ${amount(quota.nominal)}, of which ${amount(own)} used`
      : t`deserves ${amount(quota.deserved)}, of which ${amount(own)} used (nominal: ${amount(quota.nominal)})`,
    t`borrowed ${amount(quota.borrowed)} (borrowing limit: ${limit(quota.borrowing_limit)})`,
    t`idle and lendable ${amount(lendable)} (lending limit: ${limit(quota.lending_limit)})`,
  ].join("\n");
}

function rank(resource: string): number {
  if (resource.includes("/")) return /mem|cores/.test(resource) ? 1 : 0;
  return resource === "cpu" ? 2 : 3;
}

interface UsedQuota {
  flavor: string;
  resource: string;
  used: number;
  nominal?: number;
  deserved?: number | null;
  subtree_quota?: number;
}

/** In tenths, so that the order does not change with each admission. */
function fullness({ used, nominal, deserved, subtree_quota }: UsedQuota): number {
  const total = deserved ?? nominal ?? subtree_quota ?? 0;
  return total > 0 ? Math.floor((10 * used) / total) : used > 0 ? Number.POSITIVE_INFINITY : 0;
}

/** The scarcest first; of equally full ones accelerators, and flavors of one resource side by side. */
export function sortQuotas<Quota extends UsedQuota>(quotas: readonly Quota[]): Quota[] {
  return quotas.toSorted(
    (a, b) =>
      (fullness(a) === fullness(b) ? 0 : fullness(b) - fullness(a)) ||
      rank(a.resource) - rank(b.resource) ||
      a.resource.localeCompare(b.resource) ||
      a.flavor.localeCompare(b.flavor, "en", { numeric: true }),
  );
}

/** A weighted share for people: Kueue counts it in thousandths of the cohort's lendable amount. */
export function formatWeightedShare(share: number | "Infinity"): string {
  if (share === "Infinity") return "∞";
  return share >= 100 ? String(Math.round(share)) : String(Math.round(share * 10) / 10);
}

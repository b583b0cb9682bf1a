/** What pod sets ask for, in a few words. */
import type { PodSet } from "@/api/types";
import { formatAmountShort, parseAmount } from "@/lib/quantity";

/** The requests of all pods of all pod sets, in base units by resource. */
export function totalRequests(podSets: Pick<PodSet, "count" | "requests">[]): Map<string, number> {
  const totals = new Map<string, number>();
  for (const { count, requests } of podSets) {
    for (const [resource, quantity] of Object.entries(requests)) {
      totals.set(resource, (totals.get(resource) ?? 0) + count * parseAmount(resource, quantity));
    }
  }
  return totals;
}

/** Accelerators before cpu and memory: they are what people wait for. */
function rank(resource: string): number {
  if (/mem(-percentage)?$/.test(resource) && resource.includes("/")) return 1;
  if (/cores$/.test(resource)) return 1.5;
  if (resource.includes("/")) return 0;
  return resource === "cpu" ? 2 : resource === "memory" ? 3 : 4;
}

function describe(resource: string, amount: number): string {
  const name = resource.split("/").at(-1) ?? resource;
  return `${formatAmountShort(resource, amount)} ${name}`;
}

/** Two lines, "2 gpu · 16 GiB gpumem" and "8 cpu · 16 GiB memory": the accelerators first, for they are scarce. */
export function summarizeRequests(podSets: Pick<PodSet, "count" | "requests">[]): string[] {
  const parts = [...totalRequests(podSets)]
    .filter(([, amount]) => amount > 0)
    .sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b));
  const line = (chosen: [string, number][]) =>
    chosen.map(([resource, amount]) => describe(resource, amount)).join(" · ");
  return [
    line(parts.filter(([resource]) => rank(resource) < 2)),
    line(parts.filter(([resource]) => rank(resource) >= 2)),
  ].filter((text) => text !== "");
}

/** The requests of pod sets, in a few words. */
import { t } from "@lingui/core/macro";
import { formatAmountShort, parseAmount } from "../quantity";

interface Asking {
  count: number;
  requests: Readonly<Record<string, string>>;
}

/** The requests of all pods of all pod sets, in base units by resource. */
export function totalRequests(podSets: readonly Asking[]): Map<string, number> {
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

/** "2 GPU", "16 GiB" of device memory, "25 %" of a device's cores: the unit says which it is. */
function describe(resource: string, amount: number): string {
  const text = formatAmountShort(resource, amount);
  const name = resource.split("/").at(-1) ?? resource;
  if (resource === "cpu") return t`${text} CPU`;
  if (name === "gpu") return t`${text} GPU`;
  if (resource === "memory") return t`${text} RAM`;
  if (/percentage$/.test(name)) return t`${text} of memory`;
  const hasUnit = /[^\d.,\s]/.test(text);
  return hasUnit && resource.includes("/") ? text : `${text} ${name}`;
}

/** "2 GPU, 16 GiB, 25 %" and "8 CPU, 16 GiB RAM": accelerators apart from the rest; empty where nothing is requested. */
export function requestWords(podSets: readonly Asking[]): { devices: string; others: string } {
  const parts = [...totalRequests(podSets)]
    .filter(([, amount]) => amount > 0)
    .sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b));
  const line = (chosen: [string, number][]) =>
    chosen.map(([resource, amount]) => describe(resource, amount)).join(", ");
  return {
    devices: line(parts.filter(([resource]) => rank(resource) < 2)),
    others: line(parts.filter(([resource]) => rank(resource) >= 2)),
  };
}

/** The same as lines, the accelerators first, for they are scarce. */
export function summarizeRequests(podSets: readonly Asking[]): string[] {
  const { devices, others } = requestWords(podSets);
  return [devices, others].filter((text) => text !== "");
}

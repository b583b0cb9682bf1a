/** Nodes as rows: what is asked of each beside what it has, which of them match the filters, and in which order. */

import type { Node } from "@/api/types";
import { byName } from "@/lib/language";
import { parseAmount } from "@/lib/quantity";
import type { NodeFilters } from "@/lib/url/node-filters";
import { type NodeState, nodeState } from "@/lib/words/node-state";

/** In base units. A total of null is not known, and so limits nothing. */
export interface Amount {
  resource: string;
  requested: number;
  total: number | null;
}

export interface NodeRow {
  node: Node;
  state: NodeState;
  cpu: Amount;
  memory: Amount;
  pods: Amount;
}

type Quantities = Pick<Node, "allocatable" | "requested">;

export function amountOf({ allocatable, requested }: Quantities, resource: string): Amount {
  const total = allocatable[resource];
  return {
    resource,
    requested: parseAmount(resource, requested[resource] ?? "0"),
    total: total === undefined ? null : parseAmount(resource, total),
  };
}

/** The used share, from 0 on; 0 where nothing is known. */
export function fullness({ requested, total }: { requested: number; total: number | null }): number {
  return total === null || total === 0 ? 0 : requested / total;
}

const FIRST = ["cpu", "memory", "pods"];

/**
 * Every resource that the node has: cpu, memory and pods, then the others by name. Of a node that says nothing of what it
 * has, what is asked of it. Shares of devices are no resources of the node: its devices have them.
 */
export function amountsOf(node: Quantities): Amount[] {
  const stated = Object.keys(node.allocatable);
  const names = new Set(stated.length > 0 ? stated : Object.keys(node.requested));
  const others = [...names].filter((name) => !FIRST.includes(name)).sort();
  return [...FIRST.filter((name) => names.has(name)), ...others].map((name) => amountOf(node, name));
}

export function nodeRow(node: Node): NodeRow {
  const amount = (resource: string) => amountOf(node, resource);
  return { node, state: nodeState(node), cpu: amount("cpu"), memory: amount("memory"), pods: amount("pods") };
}

function hasLabel(labels: Record<string, string>, wanted: string): boolean {
  const [key = "", value] = wanted.split("=", 2);
  return value === undefined ? key in labels : labels[key] === value;
}

export function matchesNodeFilters({ node, state }: NodeRow, filters: NodeFilters): boolean {
  return (
    (filters.search === undefined || node.name.includes(filters.search)) &&
    (filters.flavor === undefined || node.flavors.includes(filters.flavor)) &&
    (filters.label === undefined || hasLabel(node.labels, filters.label)) &&
    (filters.state === undefined || state === filters.state)
  );
}

const ORDERS: Record<string, (a: NodeRow, b: NodeRow) => number> = {
  name: (a, b) => byName(a.node.name, b.node.name),
  cpu: (a, b) => fullness(a.cpu) - fullness(b.cpu),
  memory: (a, b) => fullness(a.memory) - fullness(b.memory),
  pods: (a, b) => a.pods.requested - b.pods.requested,
  devices: (a, b) => deviceFullness(a) - deviceFullness(b),
};

function deviceFullness({ node: { device_totals: totals } }: NodeRow): number {
  return fullness({ requested: totals.used_memory_mib, total: totals.memory_mib });
}

/** By the column that `sort` names, "-" before it for the largest first; by name without one that is known. */
export function sortNodes(rows: readonly NodeRow[], sort = "name"): NodeRow[] {
  const order = ORDERS[sort.replace("-", "")] ?? ORDERS.name;
  const sign = sort.startsWith("-") ? -1 : 1;
  return rows.toSorted((a, b) => sign * (order?.(a, b) ?? 0) || byName(a.node.name, b.node.name));
}

/** How many nodes are in each state. */
export function countNodeStates(rows: readonly NodeRow[]): Map<NodeState, number> {
  const counts = new Map<NodeState, number>();
  for (const { state } of rows) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}

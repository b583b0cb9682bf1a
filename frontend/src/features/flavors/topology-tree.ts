/** The domains of a topology: what each has and how much of it is taken. */

import type { Node } from "@/api/types";
import { byName } from "@/lib/language";
import { parseAmount } from "@/lib/quantity";
import { nodeState } from "@/lib/words/node-state";

/** A quantity that a map can show: how much of it a node has, and how much of that is taken, in base units. */
export const MAP_RESOURCES = ["gpu-memory", "cpu", "memory", "pods"] as const;
export type MapResource = (typeof MAP_RESOURCES)[number];

export interface Held {
  used: number;
  total: number;
}

export function heldOf(node: Node, resource: MapResource): Held {
  if (resource === "gpu-memory") {
    return { used: node.device_totals.used_memory_mib, total: node.device_totals.memory_mib };
  }
  return {
    used: parseAmount(resource, node.requested[resource] ?? "0"),
    total: parseAmount(resource, node.allocatable[resource] ?? "0"),
  };
}

export interface Domain extends Held {
  /** The values of the labels from the widest level to this one. */
  path: string[];
  name: string;
  /** The label of this level. */
  level: string;
  nodes: Node[];
  children: Domain[];
  /** On nodes that take pods; and the most of it on one of them. */
  free: number;
  freest: number;
}

const HOSTNAME = "kubernetes.io/hostname";

function labelOf(node: Node, level: string): string | undefined {
  return node.labels[level] ?? (level === HOSTNAME ? node.name : undefined);
}

/**
 * The tree of domains above the hosts: the last level is left out where it is the host itself. Nodes without a label of
 * each level are in no domain, as in Kueue.
 */
export function domainsOf(
  nodes: readonly Node[],
  levels: readonly string[],
  resource: MapResource,
): Domain[] {
  const placed = nodes.filter((node) => levels.every((level) => labelOf(node, level) !== undefined));
  const widths = levels.at(-1) === HOSTNAME ? levels.slice(0, -1) : levels;
  return divide(placed, widths, resource, []);
}

function divide(nodes: Node[], levels: readonly string[], resource: MapResource, path: string[]): Domain[] {
  const [level, ...below] = levels;
  if (level === undefined) return [];
  const parts = Map.groupBy(nodes, (node) => labelOf(node, level) ?? "");
  return [...parts]
    .map(([name, members]) => {
      const here = [...path, name];
      const held = members.map((node) => heldOf(node, resource));
      const open = members
        .filter((node) => nodeState(node) === "ready")
        .map((node) => heldOf(node, resource));
      const free = open.map(({ total, used }) => Math.max(0, total - used));
      return {
        path: here,
        name,
        level,
        nodes: members.toSorted((a, b) => byName(a.name, b.name)),
        children: divide(members, below, resource, here),
        used: held.reduce((sum, each) => sum + each.used, 0),
        total: held.reduce((sum, each) => sum + each.total, 0),
        freest: Math.max(0, ...free),
        free: free.reduce((sum, each) => sum + each, 0),
      };
    })
    .sort((a, b) => byName(a.name, b.name));
}

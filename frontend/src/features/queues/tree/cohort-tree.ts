/** The cohort tree as rows to show, from the live data. */
import { waiting } from "@/api/live/live-data";
import type { LiveClusterQueue, LiveCohort, LiveData } from "@/api/types";

export interface CohortRow {
  kind: "cohort";
  name: string;
  depth: number;
  /** Null for a cohort that queues name and that is not declared: Kueue creates it in the same way. */
  cohort: LiveCohort | null;
  /** Sums over all ClusterQueues below. */
  pending: number;
  admitted: number;
  queues: number;
  /** The amounts that queues below borrow, by quotaKey: lent within the cohort, or from above it. */
  borrowed: ReadonlyMap<string, number>;
  open: boolean;
}

export interface QueueRow {
  kind: "queue";
  name: string;
  depth: number;
  queue: LiveClusterQueue;
}

export type TreeRow = CohortRow | QueueRow;

interface CohortNode {
  name: string;
  cohort: LiveCohort | null;
  parent: string;
  children: CohortNode[];
  queues: [string, LiveClusterQueue][];
}

type TreeData = Pick<LiveData, "cluster_queues" | "cohorts">;

function cohortNodes({ cluster_queues: queues, cohorts }: TreeData): Map<string, CohortNode> {
  const nodes = new Map<string, CohortNode>();
  const node = (name: string): CohortNode => {
    let found = nodes.get(name);
    if (found === undefined) {
      const cohort = cohorts[name] ?? null;
      found = { name, cohort, parent: cohort?.parent ?? "", children: [], queues: [] };
      nodes.set(name, found);
      if (found.parent !== "") node(found.parent).children.push(found);
    }
    return found;
  };
  for (const name of Object.keys(cohorts)) node(name);
  for (const [name, queue] of Object.entries(queues))
    if (queue.cohort !== "") node(queue.cohort).queues.push([name, queue]);
  return nodes;
}

/** The cohorts that begin a tree; of a circle, which Kueue refuses to use, every member does. */
function roots(nodes: Map<string, CohortNode>): CohortNode[] {
  const inCircle = (node: CohortNode) => {
    const seen = new Set<string>();
    for (let at: CohortNode | undefined = node; at !== undefined; at = nodes.get(at.parent)) {
      if (seen.has(at.name)) return at.name === node.name;
      seen.add(at.name);
    }
    return false;
  };
  return [...nodes.values()].filter((node) => node.parent === "" || inCircle(node));
}

const byName = (a: { name: string }, b: { name: string }) =>
  a.name.localeCompare(b.name, "en", { numeric: true });

/**
 * Cohorts before queues, each by name, below their parents; queues without a cohort at the end. A search keeps what has
 * the text in its name, with all its ancestors, and all that is below a cohort that has it.
 */
export function treeRows(data: TreeData, closed: ReadonlySet<string>, search = ""): TreeRow[] {
  const text = search.trim().toLowerCase();
  const matches = (name: string) => name.toLowerCase().includes(text);
  const nodes = cohortNodes(data);

  const queueRows = (queues: [string, LiveClusterQueue][], depth: number, all: boolean): QueueRow[] =>
    queues
      .filter(([name]) => all || matches(name))
      .map(([name, queue]): QueueRow => ({ kind: "queue", name, depth, queue }))
      .sort(byName);

  const visit = (node: CohortNode, depth: number, all: boolean, path: ReadonlySet<string>): TreeRow[] => {
    if (path.has(node.name)) return [];
    const whole = all || matches(node.name);
    const below = new Set(path).add(node.name);
    const rows = node.children.toSorted(byName).flatMap((child) => visit(child, depth + 1, whole, below));
    rows.push(...queueRows(node.queues, depth + 1, whole));
    if (rows.length === 0 && !whole) return [];
    const open = text !== "" || !closed.has(node.name);
    const sums = sumUp(node, path);
    const head: CohortRow = { kind: "cohort", name: node.name, depth, cohort: node.cohort, open, ...sums };
    return open ? [head, ...rows] : [head];
  };

  const top = roots(nodes)
    .sort(byName)
    .flatMap((root) => visit(root, 0, text === "", new Set()));
  const alone = Object.entries(data.cluster_queues).filter(([, queue]) => queue.cohort === "");
  return [...top, ...queueRows(alone, 0, text === "")];
}

export function quotaKey({ flavor, resource }: { flavor: string; resource: string }): string {
  return `${flavor} ${resource}`;
}

type Sums = Pick<CohortRow, "pending" | "admitted" | "queues" | "borrowed">;

function sumUp(node: CohortNode, path: ReadonlySet<string>): Sums {
  const borrowed = new Map<string, number>();
  const borrow = (key: string, amount: number) => borrowed.set(key, (borrowed.get(key) ?? 0) + amount);
  const sums = { pending: 0, admitted: 0, queues: node.queues.length, borrowed };
  for (const [, queue] of node.queues) {
    sums.pending += waiting(queue);
    sums.admitted += queue.admitted;
    for (const quota of queue.usage) borrow(quotaKey(quota), quota.borrowed);
  }
  const below = new Set(path).add(node.name);
  for (const child of node.children) {
    if (below.has(child.name)) continue;
    const part = sumUp(child, below);
    sums.pending += part.pending;
    sums.admitted += part.admitted;
    sums.queues += part.queues;
    for (const [key, amount] of part.borrowed) borrow(key, amount);
  }
  return sums;
}

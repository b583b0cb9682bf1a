import { expect, it } from "vitest";
import type { LiveClusterQueue, LiveCohort } from "@/api/types";
import { type TreeRow, treeRows } from "./cohort-tree";

const ACTIVE = { active: true, reason: "Ready", message: "" };

function queue(cohort: string, pending = 0, admitted = 0): LiveClusterQueue {
  return {
    cohort,
    ...ACTIVE,
    pending,
    admitted,
    inadmissible: 0,
    reserving: 0,
    weighted_share: 0,
    usage: [],
  };
}

function cohort(parent = ""): LiveCohort {
  return { parent, weighted_share: 0, usage: [] };
}

const DATA = {
  cohorts: { company: cohort(), research: cohort("company") },
  cluster_queues: {
    "vision-10": queue("research", 1, 1),
    "vision-9": queue("research", 2),
    production: queue("company", 4, 8),
    lonely: queue(""),
    guest: queue("undeclared"),
  },
};

/** "  name" with two spaces for each step down. */
function outline(rows: TreeRow[]): string[] {
  return rows.map((row) => `${"  ".repeat(row.depth)}${row.kind === "cohort" ? "+" : ""}${row.name}`);
}

it("puts cohorts below their parents, queues below their cohorts and the others at the end", () => {
  expect(outline(treeRows(DATA, new Set()))).toEqual([
    "+company",
    "  +research",
    "    vision-9",
    "    vision-10",
    "  production",
    "+undeclared",
    "  guest",
    "lonely",
  ]);
});

it("adds up what is below a cohort, also when it is closed", () => {
  const [company, ...rest] = treeRows(DATA, new Set(["company"]));
  expect(company).toMatchObject({ kind: "cohort", open: false, pending: 7, admitted: 9, queues: 3 });
  expect(outline(rest)).toEqual(["+undeclared", "  guest", "lonely"]);
});

it("finds a queue with its ancestors, and everything below a cohort", () => {
  expect(outline(treeRows(DATA, new Set(["company"]), "vision-9"))).toEqual([
    "+company",
    "  +research",
    "    vision-9",
  ]);
  expect(outline(treeRows(DATA, new Set(), "RESEARCH"))).toEqual([
    "+company",
    "  +research",
    "    vision-9",
    "    vision-10",
  ]);
  expect(treeRows(DATA, new Set(), "nothing")).toEqual([]);
});

it("shows cohorts that are each other's parent, and ends", () => {
  const data = { cohorts: { a: cohort("b"), b: cohort("a") }, cluster_queues: { q: queue("a") } };
  const names = treeRows(data, new Set()).map((row) => row.name);
  expect(names).toContain("q");
  expect(names).toContain("b");
});

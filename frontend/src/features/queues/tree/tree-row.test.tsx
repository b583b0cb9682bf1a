import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { LiveClusterQueue, LiveQuota } from "@/api/types";
import { renderPart } from "@/test-render";
import type { TreeRow } from "./cohort-tree";
import { TreeRowView } from "./tree-row";

const RESOURCES = ["a", "b", "c", "d", "e", "f"].map((name) => `example.com/${name}`);

function quota(resource: string, used: number): LiveQuota {
  return {
    flavor: "v100",
    resource,
    nominal: 100,
    used,
    borrowed: Math.max(0, used - 100),
    deserved: null,
    borrowing_limit: null,
    lending_limit: null,
  };
}

/** The bars that are drawn, by resource. */
function bars(): string[] {
  return screen.getAllByRole("img").map((bar) => bar.getAttribute("aria-label")?.split(" ")[0] ?? "");
}

const usage = [...RESOURCES.map((resource, place) => quota(resource, 10 * place)), quota("cpu", 97)];

it("shows the fullest quotas of a queue where there are too many, cpu too", async () => {
  const queue = { pending: 1, inadmissible: 0, admitted: 1, weighted_share: 0, active: true, usage };
  const row = { kind: "queue", name: "main", depth: 0, queue: queue as unknown as LiveClusterQueue };
  await renderPart(<TreeRowView row={row as TreeRow} onToggle={() => {}} />);
  expect(bars()[0]).toBe("cpu");
  expect(bars()).not.toContain("example.com/a");
  expect(screen.getByText("and 1 more")).toBeDefined();
});

it("shows the fullest quotas of a cohort first, cpu too", async () => {
  const cohort = {
    parent: "",
    weighted_share: 0,
    usage: usage.map(({ flavor, resource, nominal, used }) => ({
      flavor,
      resource,
      deserved: null,
      subtree_quota: nominal,
      used,
    })),
  };
  const row = {
    kind: "cohort",
    name: "all",
    depth: 0,
    cohort,
    borrowed: new Map(),
    pending: 1,
    admitted: 1,
    queues: 1,
    opened: true,
  };
  await renderPart(<TreeRowView row={row as unknown as TreeRow} onToggle={() => {}} />);
  expect(bars()[0]).toBe("cpu");
  expect(bars()).not.toContain("example.com/a");
});

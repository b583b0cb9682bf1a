import { screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";
import { type TriedPlan, useTrial } from "@/api/studio/questions";
import type { WhatIf } from "@/api/types";
import { TriedEffects } from "@/components/manifest/tried-effects";
import { renderPart, serve } from "@/test-render";

const none = { count: 0, workloads: [] };
const named = (...workloads: string[]) => ({
  count: workloads.length,
  workloads: workloads.map((workload) => ({ workload, cluster_queue: "q" })),
});
const lost = (workload: string, starts_again: boolean) => ({
  workload,
  cluster_queue: "q",
  reason: "Drained",
  preemptor: "",
  preemptor_cluster_queue: "",
  ran_seconds: 60,
  devices: 1,
  starts_again,
});

function answered(starts: string[], evicted: [string, boolean][]): { body: unknown } {
  const effects = { complete: true, starts: named(...starts), waits: none, preempted: none, stopped: none };
  const first = {
    effects: { ...effects, quotas: [], inactive: [] },
    evictions: {
      count: evicted.length,
      device_seconds: 60,
      workloads: evicted.map(([key, again]) => lost(key, again)),
    },
  } satisfies WhatIf["first"];
  return { body: { id: 7, state: "Answered", what_if: { first, whole: null } } };
}

function Trial({ plan }: { plan: TriedPlan }) {
  return <TriedEffects {...useTrial("default", plan)} drains={plan.nodes !== undefined} />;
}

async function tried(plan: TriedPlan, answer: { status?: number; body: unknown }) {
  const calls = serve([
    [/^POST/, { status: 201, body: { id: 7 } }],
    [/^GET/, answer],
  ]);
  await renderPart(<Trial plan={plan} />);
  return calls;
}

it("tells evicted workloads that start again from waiting ones that start", async () => {
  const evicted: [string, boolean][] = [
    ["x/moved", true],
    ["x/stopped", false],
  ];
  const calls = await tried({ nodes: [{ drain: "n1" }] }, answered(["x/moved", "y/waited"], evicted));
  expect(await screen.findByText(/1 of them starts again elsewhere at once/)).toBeDefined();
  expect(screen.getByText(/1 waiting workload starts/).textContent).toContain("y/waited");
  const asked = calls.find(({ method }) => method === "POST")?.body as { plan: string };
  expect(JSON.parse(asked.plan)).toEqual({ nodes: [{ drain: "n1" }] });
});

it("does not say that a requeued workload starts elsewhere: its old place may be the best again", async () => {
  await tried({ requeue: ["x/job"] }, answered(["x/job"], [["x/job", true]]));
  expect((await screen.findByText(/1 of them starts again/)).textContent).toBe(
    "1 of them starts again at once: x/job",
  );
});

it("says that no other workload starts", async () => {
  await tried({ end: ["x/job"] }, answered([], [["x/job", false]]));
  expect(await screen.findByText("No waiting workload starts because of it.")).toBeDefined();
});

it("says why a trial failed", async () => {
  await tried({ end: ["x/job"] }, { body: { id: 7, state: "Failed", message: "Time limit", what_if: null } });
  expect(await screen.findByText(/not known: Time limit/)).toBeDefined();
});

it("does not try more workloads than a plan may have", async () => {
  const calls = await tried({ end: Array.from({ length: 1001 }, (_, index) => `x/${index}`) }, { body: {} });
  expect(await screen.findByText(/more than 1000 workloads cannot be tried at once/)).toBeDefined();
  await waitFor(() => expect(calls).toEqual([]));
});

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { ClusterQueue } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { QuotaForm } from "./quota-form";

const QUEUE: ClusterQueue = {
  cluster: "default",
  name: "research",
  cohort: "company",
  queueing_strategy: "BestEffortFIFO",
  stop_policy: "None",
  fair_weight: "1",
  uid: "u",
  labels: {},
  annotations: {},
  generation: 1,
  created_at: "2026-11-20T10:00:00Z",
  deletion_requested_at: null,
  preemption_protection: { minimum_run_seconds: 0, cool_down_seconds: 0 },
  namespace_selector: null,
  preemption: {
    within_cluster_queue: "Never",
    reclaim_within_cohort: "Never",
    borrow_within_cohort: { policy: "Never", max_priority_threshold: null },
  },
  flavor_fungibility: { when_can_borrow: "MayStopSearch", when_can_preempt: "TryNextFlavor", preference: "" },
  admission_checks: [],
  admission_mode: "",
  preempt_for_devices: false,
  node_quotas: [],
  pending: 0,
  reserving: 0,
  admitted: 0,
  conditions: [],
  resource_groups: [
    {
      covered_resources: ["nvidia.com/gpu"],
      flavors: [
        {
          name: "v100",
          resources: [
            { name: "nvidia.com/gpu", nominal_quota: "8", borrowing_limit: null, lending_limit: null },
          ],
        },
      ],
    },
  ],
};

class SilentSocket {
  close(): void {}
}

function render(onDone: () => void) {
  vi.stubGlobal("WebSocket", SilentSocket);
  return renderPart(
    <ClusterProvider cluster="default">
      <QuotaForm queue={QUEUE} onDone={onDone} />
    </ClusterProvider>,
  );
}

const field = (name: string) =>
  screen.getByRole("textbox", { name: new RegExp(`^${name} of nvidia.com/gpu`) });

const quota = (change: Partial<Record<"nominal_quota" | "borrowing_limit", string>>): ClusterQueue => {
  const copy = structuredClone(QUEUE);
  Object.assign(copy.resource_groups[0]?.flavors[0]?.resources[0] ?? {}, change);
  return copy;
};

it("sends what the user changed, on top of what somebody else changed meanwhile (D1)", async () => {
  const now = {
    ...quota({ nominal_quota: "12" }),
    generation: 7,
    fair_weight: "3",
    stop_policy: "Hold" as const,
  };
  const calls = serve([
    [/^GET/, { body: now }],
    [/^PATCH/, { body: QUEUE }],
  ]);
  const onDone = vi.fn();
  await render(onDone);
  const user = userEvent.setup();
  await user.type(field("Borrowing limit"), "4");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await vi.waitFor(() => expect(onDone).toHaveBeenCalled());
  const sent = calls.find(({ method }) => method === "PATCH");
  expect(sent?.address).toBe("/api/v1/cluster-queues/research/?cluster=default");
  expect(sent?.ifMatch).toBe('"7"');
  expect(sent?.body).toEqual({
    resource_groups: [
      {
        covered_resources: ["nvidia.com/gpu"],
        flavors: [
          {
            name: "v100",
            resources: [
              { name: "nvidia.com/gpu", nominal_quota: "12", borrowing_limit: "4", lending_limit: null },
            ],
          },
        ],
      },
    ],
  });
});

it("shows the other value first when both changed one field, and replaces it when asked again", async () => {
  const calls = serve([
    [/^GET/, { body: quota({ borrowing_limit: "2" }) }],
    [/^PATCH/, { body: QUEUE }],
  ]);
  const onDone = vi.fn();
  await render(onDone);
  const user = userEvent.setup();
  await user.type(field("Borrowing limit"), "4");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText(/Somebody changed the same fields meanwhile/)).toBeDefined();
  expect(screen.getByText("Borrowing limit of nvidia.com/gpu, flavor v100")).toBeDefined();
  expect(calls.some(({ method }) => method === "PATCH")).toBe(false);
  await user.click(screen.getByRole("button", { name: "Save" }));
  await vi.waitFor(() => expect(onDone).toHaveBeenCalled());
  const sent = calls.find(({ method }) => method === "PATCH");
  expect(sent?.body).toEqual({ resource_groups: quota({ borrowing_limit: "4" }).resource_groups });
});

const meanwhile = (current: ClusterQueue) => ({
  status: 412,
  body: { reason: "PreconditionFailed", message: "It has changed.", errors: [], current },
});

it("shows what somebody else changed between its reading and its writing (A2)", async () => {
  const calls = serve([
    [/^GET/, { body: QUEUE }],
    [/^PATCH/, meanwhile({ ...quota({ borrowing_limit: "2" }), generation: 2 })],
  ]);
  const onDone = vi.fn();
  await render(onDone);
  const user = userEvent.setup();
  await user.type(field("Borrowing limit"), "4");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText(/Somebody changed the same fields meanwhile/)).toBeDefined();
  expect(screen.getByText("Borrowing limit of nvidia.com/gpu, flavor v100")).toBeDefined();
  expect(calls.filter(({ method }) => method === "PATCH").map(({ ifMatch }) => ifMatch)).toEqual(['"1"']);
  expect(onDone).not.toHaveBeenCalled();
});

it("carries its change over when somebody else changed another field between (A2)", async () => {
  const calls = serve([
    [/^GET/, { body: QUEUE }],
    [/^PATCH/, meanwhile({ ...quota({ nominal_quota: "12" }), generation: 2 })],
  ]);
  await render(vi.fn());
  const user = userEvent.setup();
  await user.type(field("Borrowing limit"), "4");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("It has changed.")).toBeDefined(); // refused for the second time as well
  const sent = calls.filter(({ method }) => method === "PATCH");
  expect(sent.map(({ ifMatch }) => ifMatch)).toEqual(['"1"', '"2"']);
  const { resource_groups } = quota({ nominal_quota: "12", borrowing_limit: "4" });
  expect(sent[1]?.body).toEqual({ resource_groups });
});

it("does not send what is no quantity, and says so at the field", async () => {
  const calls = serve([]);
  await render(vi.fn());
  const user = userEvent.setup();
  await user.clear(field("Nominal quota"));
  await user.type(field("Nominal quota"), "8GB");
  expect(screen.getByText(/"8GB" is not a quantity/)).toBeDefined();
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(calls).toEqual([]);
});

it("puts the server's fault at its field and stays open", async () => {
  const fault = {
    document: 0,
    path: "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
    value: "9",
    rule: "must not be more than nominalQuota",
    remedy: "lower it",
  };
  serve([
    [/^GET/, { body: QUEUE }],
    [/^PATCH/, { status: 400, body: { reason: "Invalid", message: "It was refused.", errors: [fault] } }],
  ]);
  const onDone = vi.fn();
  await render(onDone);
  const user = userEvent.setup();
  await user.type(field("Lending limit"), "9");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("must not be more than nominalQuota – lower it")).toBeDefined();
  expect(field("Lending limit").getAttribute("aria-invalid")).toBe("true");
  expect(document.activeElement).toBe(field("Lending limit"));
  expect(screen.getByText("It was refused.")).toBeDefined();
  expect(onDone).not.toHaveBeenCalled();
});

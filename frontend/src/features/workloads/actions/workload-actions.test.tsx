import { Notifications } from "@mantine/notifications";
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { Session, Workload } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { possibleActions, WorkloadActions } from "./workload-actions";

const WORKLOAD: Workload = {
  id: 1,
  uid: "u",
  cluster: "default",
  labels: {},
  never_preempt: false,
  maximum_execution_seconds: null,
  submitted_by: "ada",
  requeue_at: null,
  expected_start: null,
  namespace: "research",
  name: "train",
  local_queue: "main",
  cluster_queue: "research",
  priority: 0,
  priority_class: "",
  status: "Pending",
  state: "Pending",
  active: true,
  reason: "",
  message: "",
  created_at: "2026-11-20T10:00:00Z",
  queued_at: "2026-11-20T10:00:00Z",
  quota_reserved_at: null,
  admitted_at: null,
  evicted_at: null,
  finished_at: null,
  owner: null,
  variant_of: "",
  pod_sets: [],
};

function session(role: "submitter" | "viewer", namespace: string): Session {
  return {
    authenticated: true,
    user: { username: "ada", is_cluster_admin: false, may_use_admin: false },
    roles: [{ role, namespace, cohort: null, cluster: null }],
    clusters: [],
    login_methods: { password: true, provider: null },
  };
}

class SilentSocket {
  close(): void {}
}

beforeEach(() => {
  vi.stubGlobal("WebSocket", SilentSocket);
});

describe("what can be done", () => {
  it.each([
    [{ status: "Pending", active: true }, ["hold", "priority", "cancel"]],
    [{ status: "Pending", active: false }, ["release", "priority", "cancel"]],
    [{ status: "Admitted", active: true }, ["hold", "requeue", "priority", "cancel"]],
    [{ status: "Evicted", active: true }, ["hold", "priority", "cancel"]],
    [{ status: "Finished", active: true }, []],
    [{ status: "Admitted", active: true, variant_of: "train" }, []],
  ] as const)("%o: %o", (workload, actions) => {
    expect(possibleActions({ variant_of: "", ...workload })).toEqual(actions);
  });
});

it("offers nothing to those who may only look", async () => {
  serve([[/session/, { body: session("viewer", "research") }]]);
  await renderPart(
    <ClusterProvider cluster="default">
      <WorkloadActions workload={WORKLOAD} />
    </ClusterProvider>,
  );
  await waitFor(() => expect(fetch).toBeDefined());
  expect(screen.queryByRole("button")).toBeNull();
});

it("asks first, and shows the server's refusal", async () => {
  const calls = serve([
    [/session/, { body: session("submitter", "research") }],
    [/POST .*questions/, { status: 503, body: { reason: "NoStudio", message: "No studio runs." } }],
    [/^POST/, { status: 409, body: { reason: "Conflict", message: "It has ended, or is being cancelled." } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <WorkloadActions workload={WORKLOAD} />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: "Cancel" }));
  expect(calls.filter(({ address }) => address.includes("/cancel/"))).toEqual([]);
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText(/not known: No studio runs/)).toBeDefined();
  await user.click(within(dialog).getByRole("button", { name: "Cancel" }));
  expect(await within(dialog).findByText("It has ended, or is being cancelled.")).toBeDefined();
  expect(calls.at(-1)?.address).toBe("/api/v1/workloads/research/train/cancel/?cluster=default");
});

it("says why an undo failed", async () => {
  serve([
    [/session/, { body: session("submitter", "research") }],
    [/POST .*questions/, { status: 503, body: { reason: "NoStudio", message: "No studio runs." } }],
    [/POST .*\/hold\//, { body: WORKLOAD }],
    [/POST .*\/release\//, { status: 409, body: { reason: "Conflict", message: "It has ended." } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <Notifications />
      <WorkloadActions workload={WORKLOAD} />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: "Hold" }));
  await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Hold" }));
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  expect(await screen.findByText("Undo failed: On hold")).toBeDefined();
  expect(screen.getByText("research/train: It has ended.")).toBeDefined();
});

it("offers no undo of another priority, whose class before may be a PriorityClass", async () => {
  const classed = { ...WORKLOAD, priority_class: "high" };
  const calls = serve([
    [/session/, { body: session("submitter", "research") }],
    [/POST .*questions/, { status: 503, body: { reason: "NoStudio", message: "No studio runs." } }],
    [/GET .*workload-priority-classes/, { body: { results: [{ name: "urgent" }], next: null } }],
    [/POST .*\/priority\//, { body: WORKLOAD }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <Notifications />
      <WorkloadActions workload={classed} />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: "Change priority" }));
  const dialog = await screen.findByRole("dialog");
  await user.click(within(dialog).getByRole("combobox", { name: "WorkloadPriorityClass" }));
  await user.click(await screen.findByRole("option", { name: "urgent" }));
  await user.click(within(dialog).getByRole("button", { name: "Change priority" }));
  expect(await screen.findByText("Priority changed")).toBeDefined();
  expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
  expect(calls.find(({ address }) => address.includes("/priority/"))?.body).toEqual({
    priority_class: "urgent",
  });
});

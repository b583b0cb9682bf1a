import { Notifications } from "@mantine/notifications";
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { LiveDevice, Session } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { CordonButtons, type CordonProps, holdersOf, nextSteps } from "./cordon";

const session = (admin: boolean): Session => ({
  authenticated: true,
  user: { username: "ada", is_cluster_admin: admin, may_use_admin: admin },
  roles: [{ role: "admin", namespace: "research", cohort: null, cluster: null }],
  clusters: [],
  login_methods: { password: true, provider: null },
});

class SilentSocket {
  close(): void {}
}

beforeEach(() => {
  vi.stubGlobal("WebSocket", SilentSocket);
});

const buttonsOf = (state: CordonProps["state"]) => (
  <ClusterProvider cluster="default">
    <CordonButtons target={{ device: "GPU-1" }} name="Device 0 of node-1" state={state} />
    <Notifications />
  </ClusterProvider>
);
const buttons = buttonsOf(undefined);

it.each([
  [undefined, ["cordon", "drain"]],
  ["cordoned", ["drain", "uncordon"]],
  ["draining", ["uncordon"]],
] as const)("%s: %o comes next", (state, steps) => {
  expect(nextSteps(state)).toEqual(steps);
});

it("is nothing for those who do not run the cluster", async () => {
  serve([[/session/, { body: session(false) }]]);
  await renderPart(buttons);
  expect(screen.queryByRole("button")).toBeNull();
});

it("asks before it drains, and says what that means", async () => {
  const calls = serve([
    [/session/, { body: session(true) }],
    [/^PATCH/, { body: {} }],
  ]);
  await renderPart(buttons);
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: "Drain" }));
  const dialog = await screen.findByRole("dialog");
  expect(dialog.textContent).toContain("are evicted");
  expect(within(dialog).getByRole("status").textContent).toContain("No workload runs here.");
  expect(calls.filter(({ method }) => method === "PATCH")).toEqual([]);
  await user.click(within(dialog).getByRole("button", { name: "Drain" }));
  await waitFor(() => expect(calls.filter(({ method }) => method === "PATCH")).toHaveLength(1));
  const sent = calls.find(({ method }) => method === "PATCH");
  expect(sent?.address).toBe("/api/v1/devices/GPU-1/?cluster=default");
  expect(sent?.body).toEqual({ draining: true });
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  await waitFor(() => expect(calls.at(-1)?.body).toEqual({ cordoned: false }));
});

it.each([
  [undefined, "Cordon", { cordoned: true }, { cordoned: false }],
  [undefined, "Drain", { draining: true }, { cordoned: false }],
  ["cordoned", "Drain", { draining: true }, { draining: false }],
  ["cordoned", "Uncordon", { cordoned: false }, { cordoned: true }],
  ["draining", "Uncordon", { cordoned: false }, { draining: true }],
] as const)("%s: Undo of %s gives back the state before", async (state, step, change, undo) => {
  const calls = serve([
    [/session/, { body: session(true) }],
    [/^PATCH/, { body: {} }],
  ]);
  await renderPart(buttonsOf(state));
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: step }));
  await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: step }));
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  const sent = () => calls.filter(({ method }) => method === "PATCH").map(({ body }) => body);
  await waitFor(() => expect(sent()).toEqual([change, undo]));
});

it("says of a drain that evicted workloads start elsewhere", async () => {
  const none = { count: 0, workloads: [] };
  const evicted = { workload: "x/job", starts_again: true };
  const first = {
    effects: { starts: { count: 1, workloads: [evicted] }, preempted: none },
    evictions: { workloads: [evicted] },
  };
  serve([
    [/session/, { body: session(true) }],
    [/nodes\/n1\/pods/, { body: { results: [{ namespace: "x", workload: "job" }], next: null } }],
    [/^POST .*questions/, { status: 201, body: { id: 7 } }],
    [/^GET .*questions\/7/, { body: { id: 7, state: "Answered", what_if: { first, whole: null } } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <CordonButtons target={{ node: "n1" }} name="n1" state={undefined} />
    </ClusterProvider>,
  );
  await userEvent.setup().click(await screen.findByRole("button", { name: "Drain" }));
  const effects = await screen.findByText(/1 of them starts again/);
  expect(effects.textContent).toBe("1 of them starts again elsewhere at once: x/job");
});

it("says why an undo failed, although its dialog is closed", async () => {
  const calls = serve([
    [/session/, { body: session(true) }],
    [/^PATCH/, { body: {} }],
  ]);
  await renderPart(buttons);
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: "Drain" }));
  await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Drain" }));
  const undo = await screen.findByRole("button", { name: "Undo" });
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  const refused = serve([
    [/session/, { body: session(true) }],
    [/^PATCH/, { status: 404, body: { reason: "NotFound", message: "Device GPU-1 does not exist." } }],
  ]);
  await user.click(undo);
  expect(await screen.findByText("Undo failed: Draining")).toBeDefined();
  expect(screen.getByText("Device 0 of node-1: Device GPU-1 does not exist.")).toBeDefined();
  expect(calls.concat(refused).filter(({ method }) => method === "PATCH")).toHaveLength(2);
});

it("names each workload that holds a device or has a pod there once", () => {
  const device = (node: string, ...workloads: (string | null)[]) =>
    ({ node, slices: workloads.map((workload) => ({ workload })) }) as unknown as LiveDevice;
  const devices = {
    a: device("n1", "x/job", null, "x/job"),
    b: device("n1", "y/job"),
    c: device("n2", "z/job"),
  };
  expect(holdersOf({ device: "a" }, devices, [])).toEqual(["x/job"]);
  const pods = [
    { namespace: "w", workload: "cpu" },
    { namespace: "kube-system", workload: "" },
  ];
  expect(holdersOf({ node: "n1" }, devices, pods)).toEqual(["w/cpu", "x/job", "y/job"]);
});

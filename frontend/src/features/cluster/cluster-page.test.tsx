import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { Session } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { ClusterPage } from "./cluster-page";

const session = (admin: boolean): Session => ({
  authenticated: true,
  user: { username: "ada", is_cluster_admin: admin, may_use_admin: admin },
  roles: [{ role: "admin", namespace: "research", cohort: null, cluster: null }],
  clusters: [],
  login_methods: { password: true, provider: null },
});

const cluster = {
  name: "default",
  mode: "schedule",
  serves_kueue_objects: true,
  device_binding: "pin",
  placement: "all",
  accepts_workloads_from: [],
  server_url: "",
  configuration: {
    apiVersion: "config.kueue.x-k8s.io/v1beta2",
    kind: "Configuration",
    fairSharing: { preemptionStrategies: ["LessThanInitialShare"] },
  },
  device_plugin: {},
  telemetry_urls: ["http://monitor:9394/metrics"],
  created_at: "2026-01-01T00:00:00Z",
};

const problem = {
  kind: "ClusterQueue",
  namespace: "",
  name: "main",
  problem: "spec.cohort: Unknown field",
  failures: 1,
  retry_at: null,
};

const backlog = { waiting: 0, oldest_at: null };
const diagnostics = {
  leader: { alive: true, holder: "host:1", epoch: 7, acquired_at: null, renewed_at: null },
  cycles: {
    window_seconds: 3600,
    count: 3,
    p50_seconds: 0.012,
    p90_seconds: 0.2,
    longest_seconds: 1.5,
    last: null,
  },
  notes: { waiting: 4, oldest_at: "2026-01-01T00:00:00Z" },
  push: { ...backlog, refused: 2, held_off_by: "kueue-1" },
  watcher: { alive: false, last_event_at: null },
  served_object_problems: 0,
  broken_rules: [{ check: "slots", count: 2 }],
};

const page = (
  <ClusterProvider cluster="default">
    <ClusterPage
      edit={({ kind }, isThere) => <button type="button">{`${isThere ? "Edit" : "New"} ${kind}`}</button>}
    />
  </ClusterProvider>
);

beforeEach(() => {
  vi.stubGlobal(
    "WebSocket",
    class {
      close(): void {}
    },
  );
});

function answers(admin: boolean) {
  return serve([
    [/session/, { body: session(admin) }],
    [/served-objects/, { body: { results: [problem], next: null } }],
    [/diagnostics/, { body: diagnostics }],
    [/manifests\/configmap/, { body: { items: [] } }],
    [/PATCH .*clusters\/default/, { body: { ...cluster, device_binding: "bind" } }],
    [/clusters\/default/, { body: cluster }],
  ]);
}

it("says what follows before who binds is changed", async () => {
  const calls = answers(true);
  await renderPart(page);
  await userEvent.click(await screen.findByRole("radio", { name: "Bind" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByRole("alert").textContent).toContain("keep it running until they have started");
  expect(calls.some(({ method }) => method === "PATCH")).toBe(false);
  await userEvent.click(within(dialog).getByRole("button", { name: "Set Bind" }));
  await waitFor(() =>
    expect(calls.find(({ method }) => method === "PATCH")?.body).toEqual({ device_binding: "bind" }),
  );
});

it("shows which objects do not agree, and why", async () => {
  answers(true);
  await renderPart(page);
  expect(await screen.findByText("spec.cohort: Unknown field")).toBeTruthy();
});

it("lets only cluster admins change it", async () => {
  answers(false);
  await renderPart(page);
  expect((await screen.findByRole("radio", { name: "Bind" })).hasAttribute("disabled")).toBe(true);
});

it("says how the scheduler is doing, and what each number means", async () => {
  answers(true);
  await renderPart(page);
  const row = async (name: string) => (await screen.findByText(name)).closest("tr")?.textContent ?? "";
  expect(await row("Leader")).toContain("host:1");
  expect(await row("Cycle time: median, 90th percentile, maximum")).toContain("12 ms · 200 ms · 1.50 s");
  expect(await row("Changes not read yet")).toContain("4, the oldest of");
  expect(await row("Refused by the cluster")).toContain("2");
  expect(await row("Paused because of")).toContain("kueue-1");
  expect(await row("Watcher")).toContain("Silent");
  expect(await row("Accounting inconsistencies")).toContain("slots: 2");
  expect(await row("Epoch")).toContain("Increases whenever the leader changes");
});

it("shows the configuration in full, and lets it be edited", async () => {
  answers(true);
  await renderPart(page);
  expect(await screen.findByText(/LessThanInitialShare/)).toBeTruthy();
  expect(screen.getByText("http://monitor:9394/metrics")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Edit Configuration" })).toBeTruthy();
  expect(await screen.findByRole("button", { name: "New ConfigMap" })).toBeTruthy();
});

it("sets nothing that another user has changed meanwhile", async () => {
  const current = { ...cluster, mode: "observe", generation: "2" };
  const calls = serve([
    [/session/, { body: session(true) }],
    [/diagnostics/, { body: diagnostics }],
    [/manifests\/configmap/, { body: { items: [] } }],
    [/served-objects/, { body: { results: [], next: null } }],
    [
      /PATCH .*clusters\/default/,
      { status: 412, body: { reason: "PreconditionFailed", message: "x", current } },
    ],
    [/clusters\/default/, { body: cluster, etag: '"1"' }],
  ]);
  await renderPart(page);
  await userEvent.click(await screen.findByRole("radio", { name: "Bind" }));
  await userEvent.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Set Bind" }));
  expect(await screen.findByText(/The settings of this cluster have changed/)).toBeTruthy();
  expect(calls.find(({ method }) => method === "PATCH")?.ifMatch).toBe('"1"');
});

it("saves where telemetry is read, and nothing else", async () => {
  const calls = answers(true);
  await renderPart(page);
  const field = await screen.findByLabelText("Telemetry is read from", {
    selector: "input:not([type=hidden])",
  });
  expect(screen.queryByRole("button", { name: "Save" })).toBeNull();
  await userEvent.type(field, "http://10.0.0.8/metrics{Enter}");
  await userEvent.click(await screen.findByRole("button", { name: "Save" }));
  await waitFor(() =>
    expect(calls.find(({ method }) => method === "PATCH")?.body).toEqual({
      telemetry_urls: ["http://monitor:9394/metrics", "http://10.0.0.8/metrics"],
    }),
  );
});

it("shows which address was refused, and keeps what was typed", async () => {
  const mistake = {
    document: null,
    path: "telemetry_urls[1]",
    value: "ftp://x",
    rule: "'ftp://x' is not an http(s) URL.",
    remedy: "",
    reason: "Invalid",
  };
  serve([
    [/session/, { body: session(true) }],
    [/diagnostics/, { body: diagnostics }],
    [/manifests\/configmap/, { body: { items: [] } }],
    [/served-objects/, { body: { results: [], next: null } }],
    [
      /PATCH .*clusters\/default/,
      { status: 400, body: { reason: "Invalid", message: "1 mistake", errors: [mistake] } },
    ],
    [/clusters\/default/, { body: cluster }],
  ]);
  await renderPart(page);
  const field = await screen.findByLabelText("Telemetry is read from", {
    selector: "input:not([type=hidden])",
  });
  await userEvent.type(field, "ftp://x{Enter}");
  await userEvent.click(await screen.findByRole("button", { name: "Save" }));
  expect(await screen.findByText(/is not an http\(s\) URL/)).toBeTruthy();
  expect(screen.getByText("ftp://x")).toBeTruthy();
});

it("saves lists over what was read when typing began, and shows another user's edit of them", async () => {
  const settings = { body: cluster, etag: '"1"' };
  const calls = serve([
    [/session/, { body: session(true) }],
    [/diagnostics/, { body: diagnostics }],
    [/manifests\/configmap/, { body: { items: [] } }],
    [/served-objects/, { body: { results: [], next: null } }],
    [/PATCH .*clusters\/default/, { status: 412, body: { reason: "PreconditionFailed", message: "x" } }],
    [/clusters\/default/, settings],
  ]);
  await renderPart(page);
  const field = await screen.findByLabelText("Telemetry is read from", {
    selector: "input:not([type=hidden])",
  });
  await userEvent.type(field, "http://mine/metrics{Enter}");
  settings.body = { ...cluster, telemetry_urls: ["http://theirs/metrics"] };
  settings.etag = '"2"';
  await userEvent.click(await screen.findByRole("button", { name: "Save" }));
  expect(await screen.findByText(/The settings of this cluster have changed/)).toBeTruthy();
  expect(calls.find(({ method }) => method === "PATCH")?.ifMatch).toBe('"1"');
  expect(await screen.findByText("http://theirs/metrics")).toBeTruthy();
  expect(screen.queryByText("http://mine/metrics")).toBeNull();
});

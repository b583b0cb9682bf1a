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
  accepts_workloads_from: [],
  server_url: "",
  configuration: {},
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

const page = (
  <ClusterProvider cluster="default">
    <ClusterPage />
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

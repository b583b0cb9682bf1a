import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { Pod } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { Pods } from "./pods";

const POD: Pod = {
  name: "train-abc",
  uid: "1",
  pod_set: "main",
  replica: 0,
  phase: "Running",
  ready: true,
  terminating: false,
  reason: "",
  message: "",
  restarts: 2,
  node: "gpu-node-01",
  containers: ["main"],
  started_at: "2026-11-20T10:00:00Z",
  finished_at: null,
  devices: [{ uuid: "GPU-1", container: "main", memory_mib: 4096, cores_percent: 30, slots: 1 }],
};
const STUCK: Pod = {
  ...POD,
  name: "train-def",
  uid: "2",
  replica: 1,
  phase: "Pending",
  ready: false,
  reason: "Unschedulable",
  message: "0/2 nodes are available: 2 Insufficient cpu.",
  node: "",
  started_at: null,
  devices: [],
};

async function show(pods: Pod[]) {
  const calls = serve([
    [/pods\/\?/, { body: { results: pods, next: null } }],
    [/\/log\//, { body: "starting" }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <Pods workload={{ namespace: "team", name: "job-train" } as never} />
    </ClusterProvider>,
  );
  return calls;
}

it("shows where pods run, and why one does not", async () => {
  await show([POD, STUCK]);
  const rows = await screen.findAllByRole("row");
  expect(within(rows[1] as HTMLElement).getByText("gpu-node-01")).toBeDefined();
  expect(within(rows[1] as HTMLElement).getByText(/4096 MiB, 30 %/)).toBeDefined();
  expect(within(rows[2] as HTMLElement).getByText("Pending: Unschedulable")).toBeDefined();
  expect(within(rows[2] as HTMLElement).getByText(STUCK.message)).toBeDefined();
});

it("shows nothing of a workload without pods", async () => {
  await show([]);
  await waitFor(() => expect(fetch).toBeDefined());
  expect(screen.queryByText("Pods")).toBeNull();
});

it("follows the log of a pod", async () => {
  const calls = await show([POD]);
  await userEvent.setup().click(await screen.findByRole("button", { name: "Log of train-abc" }));
  expect(await screen.findByText(/starting/)).toBeDefined();
  expect(await screen.findByText("No more lines.")).toBeDefined();
  const asked = calls.find(({ address }) => address.includes("/log/"));
  expect(asked?.address).toBe(
    "/api/v1/workloads/team/job-train/pods/train-abc/log/?cluster=default&container=main&follow=true&tail=2000",
  );
});

import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { AllocatedDevice, Pod } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { WhereItRuns } from "./where-it-runs";

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

async function show(pods: Pod[], devices: AllocatedDevice[] = [], samples: unknown[] = []) {
  const calls = serve([
    [/pods\/\?/, { body: { results: pods, next: null } }],
    [/samples\/\?/, { body: { results: samples } }],
    [/\/log\//, { body: "starting" }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <WhereItRuns workload={{ namespace: "team", name: "job-train", devices } as never} />
    </ClusterProvider>,
  );
  return calls;
}

it("shows where pods run, and why one does not", async () => {
  await show([POD, STUCK]);
  const rows = await screen.findAllByRole("row");
  expect(within(rows[1] as HTMLElement).getByText("2 restarts")).toBeDefined();
  expect(within(rows[2] as HTMLElement).getByText("gpu-node-01")).toBeDefined();
  expect(within(rows[2] as HTMLElement).getByText("4 GiB")).toBeDefined();
  expect(within(rows[2] as HTMLElement).getByText("30 %")).toBeDefined();
  expect(within(rows[3] as HTMLElement).getByText("Pending: Unschedulable")).toBeDefined();
  expect(within(rows[3] as HTMLElement).getByText(STUCK.message)).toBeDefined();
});

it("shows nothing of a workload without pods", async () => {
  await show([]);
  await waitFor(() => expect(fetch).toBeDefined());
  expect(screen.queryByText("Where it runs")).toBeNull();
});

const HELD: AllocatedDevice[] = [
  {
    pod_set: "main",
    replica: 0,
    container: "main",
    node: "gpu-node-01",
    uuid: "GPU-1",
    memory_mib: 4096,
    cores_percent: 30,
  },
  {
    pod_set: "main",
    replica: 1,
    container: "main",
    node: "gpu-node-02",
    uuid: "GPU-2",
    memory_mib: 4096,
    cores_percent: 0,
  },
];

it("shows how much of what a pod holds is used, and what has no pod yet", async () => {
  const sample = { at: "2026-11-20T10:00:00Z", pod_name: POD.name, container: "main", uuid: "GPU-1" };
  await show([POD], HELD, [
    { ...sample, memory_used_mib: 1024, utilization_percent: 12, last_kernel_seconds: 3 },
  ]);
  const [, , first, other, second] = await screen.findAllByRole("row");
  expect(await within(first as HTMLElement).findByText("1 GiB used (25 %)")).toBeDefined();
  expect(within(first as HTMLElement).getByText("12 % busy")).toBeDefined();
  expect(within(other as HTMLElement).getByText("not created yet")).toBeDefined();
  expect(within(second as HTMLElement).getAllByText("use not reported")).toHaveLength(2);
});

it("says that no monitor reports", async () => {
  await show([POD], HELD);
  expect(await screen.findByText("No monitor has reported its containers recently.")).toBeDefined();
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

it("reads the log of a container before its last restart", async () => {
  const calls = await show([{ ...POD, restarts: 2 }]);
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: "Log of train-abc" }));
  await user.click(await screen.findByRole("switch", { name: "Before the last restart" }));
  expect(await screen.findByText("No more lines.")).toBeDefined();
  expect(calls.at(-1)?.address).toContain("&tail=2000&previous=true");
});

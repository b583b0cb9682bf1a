import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { FlowJob, JobFlow } from "@/api/jobs/job-flows";
import { renderPart, serve } from "@/test-render";
import { placesOf } from "./flow-layers";
import { FlowPage } from "./flow-page";
import { stepsText, whyItWaits } from "./flow-words";
import { FlowsPage } from "./flows-page";

const job = (
  name: string,
  phase: FlowJob["phase"],
  after: string[] = [],
  more: Partial<FlowJob> = {},
): FlowJob => ({
  kind: "Job",
  name,
  phase,
  after,
  waits_for: phase === "Waiting" ? after : [],
  workload: `job-${name}-1`,
  local_queue: "gpu",
  reason: phase === "Pending" ? "WaitingForQuota" : "",
  created_at: "2026-11-29T01:00:00Z",
  finished_at: null,
  ...more,
});

const FLOW: JobFlow = {
  namespace: "team",
  name: "nightly",
  phase: "Running",
  job_retain_policy: "delete",
  waiting_jobs: ["report"],
  pending_jobs: ["test"],
  running_jobs: ["train"],
  completed_jobs: ["prepare"],
  terminated_jobs: [],
  failed_jobs: [],
  jobs: [
    job("prepare", "Completed"),
    job("train", "Running", ["prepare"]),
    job("test", "Pending", ["prepare"]),
    job("report", "Waiting", ["train", "test"]),
  ],
};

const inCluster = (page: React.ReactNode) => <ClusterProvider cluster="default">{page}</ClusterProvider>;

test("the list has the state, the queue and the jobs of each flow", async () => {
  serve([[/^GET .*job-flows/, { body: { results: [FLOW], next: null } }]]);
  await renderPart(inCluster(<FlowsPage filters={{}} onFilter={() => undefined} />));
  const row = (await screen.findByText("1 succeeded, 1 running, 2 waiting")).closest("tr");
  expect(row?.textContent).toContain("team/nightly");
  expect(row?.textContent).toContain("Running");
  expect(row?.textContent).toContain("gpu");
});

test("an empty list says how a flow is made", async () => {
  serve([[/^GET .*job-flows/, { body: { results: [], next: null } }]]);
  await renderPart(inCluster(<FlowsPage filters={{}} onFilter={() => undefined} />));
  expect(await screen.findByText("No flows yet")).toBeDefined();
  expect(screen.getByText("kueueweb apply -f flow.yaml")).toBeDefined();
});

test("a flow has the graph and the reason why each job waits, with links to the workloads", async () => {
  serve([[/^GET .*job-flows/, { body: { results: [FLOW], next: null } }]]);
  await renderPart(inCluster(<FlowPage namespace="team" name="nightly" />));
  const graph = await screen.findByRole("region", { name: "Graph of the jobs" });
  const links = within(graph).getAllByRole("link");
  expect(links.map((link) => link.getAttribute("href"))).toContain("/workloads/team/job-train-1");
  const rows = within(screen.getByRole("table", { name: "Jobs" })).getAllByRole("row");
  expect(rows[3]?.textContent).toContain("Its queue does not have enough free quota.");
  expect(rows[4]?.textContent).toContain("It starts after train, test.");
  expect(screen.getByText("its jobs are deleted when all have succeeded")).toBeDefined();
});

test("a flow that is gone is said to be", async () => {
  serve([[/^GET .*job-flows/, { body: { results: [], next: null } }]]);
  await renderPart(inCluster(<FlowPage namespace="team" name="gone" />));
  expect(await screen.findByText("No such flow")).toBeDefined();
});

test("a job stands right of all jobs before it, and jobs of a cycle are last", () => {
  const places = placesOf(FLOW.jobs).map(({ job: { name }, layer, row }) => [name, layer, row]);
  expect(places).toEqual([
    ["prepare", 0, 0],
    ["train", 1, 0],
    ["test", 1, 1],
    ["report", 2, 0],
  ]);
  const cycle = [job("a", "Waiting", ["b"]), job("b", "Waiting", ["a"]), job("c", "Pending", ["elsewhere"])];
  expect(placesOf(cycle).map(({ layer }) => layer)).toEqual([1, 1, 0]);
});

test("a job stands right of the jobs that it starts after on a condition", () => {
  const jobs = [
    job("a", "Running"),
    job("b", "Waiting", ["afterany:a"]),
    job("c", "Waiting", ["after:b", "a"]),
  ];
  expect(placesOf(jobs).map(({ layer }) => layer)).toEqual([0, 1, 2]);
});

test("after a failure the waiting jobs say so", () => {
  const failed = { ...FLOW, phase: "Failed", failed_jobs: ["train"], running_jobs: [] } as const;
  expect(whyItWaits(failed, job("report", "Waiting", ["train"]))).toMatch(/no further job starts/);
  expect(stepsText(failed as unknown as JobFlow)).toBe("1 succeeded, 2 waiting, 1 failed");
});

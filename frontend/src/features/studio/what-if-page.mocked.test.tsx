import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { type Answer, renderPart, serve, textIn } from "@/test-render";
import { WhatIfPage } from "./what-if-page";

vi.mock("@/components/figures/time-series", () => ({
  TimeSeries: ({ label, lines }: { label: string; lines: { values: number[] }[] }) => (
    <figure aria-label={`${label}: ${lines.map(({ values }) => values.join()).join(" then ")}`} />
  ),
}));

const NONE = { count: 0, workloads: [] };
const EFFECTS = {
  complete: true,
  starts: NONE,
  waits: NONE,
  preempted: NONE,
  stopped: NONE,
  quotas: [],
  inactive: [],
};
const LOST = {
  workload: "team/train",
  cluster_queue: "research",
  reason: "NodeFailures",
  preemptor: "",
  preemptor_cluster_queue: "",
  ran_seconds: 7200,
  devices: 2,
  starts_again: true,
};
const FIRST = { effects: EFFECTS, evictions: { count: 2, device_seconds: 14_400, workloads: [LOST] } };
const WHOLE = {
  ...FIRST,
  cycles: 4,
  waiting: { count: 0, workloads: [] },
  queues: [
    {
      name: "research",
      pending_before: 1,
      pending: 3,
      reserving_before: 9,
      reserving: 7,
      share_before: null,
      share: 0.5,
      usage: [],
    },
  ],
  devices_before: { count: 16, used: 12, fragmented: 1.5 },
  devices: { count: 8, used: 8, fragmented: null },
};
const question = (
  state: string,
  whole: typeof WHOLE | null,
  name = "",
  hours: Record<string, unknown> | null = null,
): Answer => ({
  body: {
    id: 7,
    cluster: "default",
    kind: "what-if",
    workload: null,
    name,
    asked_by: "alice",
    state,
    reason: "",
    message: "",
    configuration_generation: 1,
    tried_at: null,
    created_at: "2026-01-01T00:00:00Z",
    started_at: null,
    ended_at: null,
    plan: "nodes:\n- lose: n1\n",
    hours: hours === null ? 0 : 24,
    applied_at: null,
    applied: null,
    remedies: null,
    what_if: { first: FIRST, whole, hours },
  },
});
const SAVED: [RegExp, Answer] = [/^GET .*saved=true/, { body: { results: [], next: null } }];

const page = (opened: number | undefined, onOpen = vi.fn()) => (
  <ClusterProvider cluster="default">
    <WhatIfPage opened={opened} onOpen={onOpen} />
  </ClusterProvider>
);

it("asks a plan that begins with an example, and opens its question", async () => {
  const calls = serve([SAVED, [/^POST .*\/studio\/questions\//, question("Pending", null)]]);
  const onOpen = vi.fn();
  await renderPart(page(undefined, onOpen));
  await userEvent.click(await screen.findByRole("button", { name: /A node fails/ }));
  expect(textIn(screen.getByRole("textbox"))).toContain("lose: NODE");
  await userEvent.click(screen.getByText("Try"));
  await waitFor(() => expect(onOpen).toHaveBeenCalledWith(7));
  expect(calls.filter(({ method }) => method === "POST")).toHaveLength(1);
});

it("shows the first answer, then the whole one", async () => {
  const asked: [RegExp, Answer] = [/^GET .*\/questions\/7\//, question("Running", null)];
  serve([SAVED, asked]);
  await renderPart(page(7));
  await screen.findByText("First effects");
  expect(screen.queryByText("Devices")).toBeNull();
  asked[1] = question("Answered", WHOLE);
  await screen.findByText("Effects until the cycles are idle", undefined, { timeout: 3000 });
  expect(screen.getByText("4.0 device hours lost")).toBeTruthy();
  expect(screen.getByText("2 workloads would be evicted or ended by the plan")).toBeTruthy();
  expect(screen.getByText("12 of 16")).toBeTruthy();
  expect(screen.getByText("∞ → 0.50")).toBeTruthy();
  expect(screen.getByText(/1 more are not listed/)).toBeTruthy();
});

const figures = (waiting: number[], wait: number | null) => ({
  started: [2, 1],
  ended: [3, 1.5],
  waiting,
  device_hours: [16, 4],
  wait_p50: [600, null],
  wait_p90: [1200, null],
  all_waits_p50: wait,
  all_waits_p90: null,
});
const queueHours = (name: string, known: boolean) => ({
  name,
  workloads: 12,
  with_run_times: known ? 10 : 1,
  before: known ? figures([4, 5], null) : null,
  after: known ? figures([2, 0.5], 1800) : null,
});
const HOURS = {
  unknown: "",
  asked_hours: 24,
  hours: 2,
  runs: 16,
  ended_runs: 120,
  total: queueHours("", true),
  queues: [queueHours("research", true), queueHours("new", false)],
  further_queues: 3,
};

it("shows the hours ahead by queue, with the runs on which they rest", async () => {
  serve([SAVED, [/^GET .*\/questions\/7\//, question("Answered", WHOLE, "", HOURS)]]);
  await renderPart(page(7));
  const table = await screen.findByRole("table", { name: "Hours ahead" });
  const [, all, research, unknown] = within(table).getAllByRole("row");
  expect(all?.textContent).toBe("All queues4.520beyond 2 h → 30mbeyond 2 h5 → 0.5");
  expect(research?.textContent).toContain("research");
  expect(unknown?.textContent).toBe("new–––––");
  expect(screen.getByText(/Means of 16 forward runs .* 120 ended runs; known for 10 of 12/)).toBeTruthy();
  expect(screen.getByText(/reached 2 of 24 hours/)).toBeTruthy();
  expect(screen.getByText(/3 further queues, .* are not listed/)).toBeTruthy();
  expect(await screen.findByRole("figure", { name: "Waiting workloads: 4,5 then 2,0.5" })).toBeTruthy();
  await userEvent.click(screen.getByRole("combobox", { name: "Queue of the charts" }));
  await userEvent.click(await screen.findByRole("option", { name: "new" }));
  await screen.findByText(/run times are known of only 1 of its 12 workloads/);
  expect(screen.queryByRole("figure")).toBeNull();
});

it("draws the figures of the single queue that the reader sees, not those of all", async () => {
  const all = { ...queueHours("", true), before: figures([40, 50], null), after: figures([20, 30], null) };
  const hours = { ...HOURS, total: all, queues: [queueHours("research", true)], further_queues: 0 };
  serve([SAVED, [/^GET .*\/questions\/7\//, question("Answered", WHOLE, "", hours)]]);
  await renderPart(page(7));
  expect(await screen.findByRole("figure", { name: "Waiting workloads: 4,5 then 2,0.5" })).toBeTruthy();
});

it("says why the hours ahead are unknown", async () => {
  const nothing = { ...queueHours("", false), before: null, after: null };
  const unknown = {
    ...HOURS,
    unknown: "NoRunEnded",
    hours: 0,
    ended_runs: 1,
    total: nothing,
    queues: [],
    further_queues: 0,
  };
  serve([SAVED, [/^GET .*\/questions\/7\//, question("Answered", WHOLE, "", unknown)]]);
  await renderPart(page(7));
  await screen.findByText(/Unknown: only 1 run has ended here/);
  expect(screen.queryByRole("table", { name: "Hours ahead" })).toBeNull();
});

it("asks for the hours that are chosen, and says that it looks ahead", async () => {
  const calls = serve([
    SAVED,
    [/^GET .*\/questions\/7\//, question("Running", WHOLE, "", null)],
    [/^POST .*\/studio\/questions\//, question("Pending", null)],
  ]);
  await renderPart(page(7));
  await screen.findByText(/The studio looks 0 hours ahead/);
  await userEvent.click(screen.getByRole("combobox", { name: "Hours ahead" }));
  await userEvent.click(await screen.findByRole("option", { name: "12 hours" }));
  await userEvent.click(screen.getByText("Try"));
  await waitFor(() => expect(calls.some(({ method }) => method === "POST")).toBe(true));
  expect(calls.find(({ method }) => method === "POST")?.body).toMatchObject({ hours: 12 });
});

it("saves a plan by a name and offers its link", async () => {
  serve([
    SAVED,
    [/^GET .*\/questions\/7\//, question("Answered", WHOLE)],
    [/^PATCH .*\/questions\/7\//, question("Answered", WHOLE, "lost node")],
  ]);
  await renderPart(page(7));
  await userEvent.type(await screen.findByLabelText("Name"), "lost node");
  await userEvent.click(screen.getByText("Save"));
  await screen.findByText("Copy the link");
});

const RESULT = {
  objects: [
    { action: "configured", kind: "ClusterQueue", namespace: "", name: "research", warnings: [] },
    {
      action: "cancelled",
      kind: "Workload",
      namespace: "team",
      name: "train",
      warnings: ["its pods stop first"],
    },
  ],
  moved: { submitted: 12, started: 0, ended: 0, nodes: 1 },
  request_id: "r-7",
};
const CHECK = /^POST .*\/apply\/.*dry_run=true/;
const APPLY = /^POST .*\/apply\/\?cluster=default$/;
const auditor = { authenticated: true, user: { username: "alice", is_cluster_admin: true }, roles: [] };

it("asks with the changes, who stops and what has moved, then applies the plan and links to the audit", async () => {
  const shown: [RegExp, Answer] = [/^GET .*\/questions\/7\//, question("Answered", WHOLE)];
  const calls = serve([
    SAVED,
    shown,
    [/session/, { body: auditor }],
    [CHECK, { body: RESULT }],
    [APPLY, { body: RESULT }],
  ]);
  await renderPart(page(7));
  await userEvent.click(await screen.findByRole("button", { name: "Apply …" }));
  const dialog = await screen.findByRole("dialog");
  await within(dialog).findByText("ClusterQueue research: changed");
  expect(dialog.textContent).toContain("Workload team/train: cancelled for good");
  expect(dialog.textContent).toContain("its pods stop first");
  expect(dialog.textContent).toContain("2 workloads stop: team/train and 1 more");
  expect(dialog.textContent).toContain("Since then: 12 workloads submitted, 1 node changed.");
  expect(calls.filter(({ method }) => method === "POST")).toHaveLength(1);
  shown[1] = question("Answered", WHOLE);
  Object.assign(shown[1].body as object, {
    applied_at: "2026-01-01T00:01:00Z",
    applied: { by: "alice", request_id: "r-7", objects: RESULT.objects },
  });
  await userEvent.click(within(dialog).getByRole("button", { name: "Apply" }));
  const link = await screen.findByRole("link", { name: "Audit records" });
  expect(link.getAttribute("href")).toContain("request_id=r-7");
  expect(screen.queryByRole("button", { name: "Apply …" })).toBeNull();
  expect(calls.filter(({ method }) => method === "POST")).toHaveLength(2);
});

it("says why a plan cannot be applied, and does not offer it", async () => {
  serve([
    SAVED,
    [/^GET .*\/questions\/7\//, question("Answered", WHOLE)],
    [CHECK, { status: 409, body: { reason: "NotApplicable", message: "only the cluster can lose Node n1" } }],
  ]);
  await renderPart(page(7));
  await userEvent.click(await screen.findByRole("button", { name: "Apply …" }));
  const dialog = await screen.findByRole("dialog");
  await within(dialog).findByText("only the cluster can lose Node n1");
  expect((within(dialog).getByRole("button", { name: "Apply" }) as HTMLButtonElement).disabled).toBe(true);
});

it("offers no application before the whole answer", async () => {
  serve([SAVED, [/^GET .*\/questions\/7\//, question("Running", null)]]);
  await renderPart(page(7));
  await screen.findByText("First effects");
  expect(screen.queryByRole("button", { name: "Apply …" })).toBeNull();
});

it("says of saved plans which were applied", async () => {
  const summary = { id: 1, asked_by: "alice", created_at: "2026-01-01T00:00:00Z" };
  const results = [
    { ...summary, name: "tried", applied_at: null },
    { ...summary, id: 2, name: "made", applied_at: "2026-01-02T00:00:00Z" },
  ];
  serve([[/^GET .*saved=true/, { body: { results, next: null } }]]);
  await renderPart(page(undefined));
  const made = await screen.findByRole("button", { name: "made" });
  expect(made.parentElement?.textContent).toMatch(/, applied$/);
  expect(screen.getByRole("button", { name: "tried" }).parentElement?.textContent).not.toContain("applied");
});

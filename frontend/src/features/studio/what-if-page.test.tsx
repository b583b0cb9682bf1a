import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { type Answer, renderPart, serve, textIn } from "@/test-render";
import { WhatIfPage } from "./what-if-page";

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
const question = (state: string, whole: typeof WHOLE | null, name = ""): Answer => ({
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
    applied_at: null,
    applied: null,
    remedies: null,
    what_if: { first: FIRST, whole },
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
  const link = await screen.findByRole("link", { name: "Its records in the audit" });
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

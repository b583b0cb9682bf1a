import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { ReportsPage } from "./reports-page";

const REPORT = {
  since: "2026-01-01T00:00:00Z",
  until: "2026-01-31T00:00:00Z",
  columns: [
    { name: "cluster", title: "Cluster", kind: "text" },
    { name: "cluster_queue", title: "ClusterQueue", kind: "text" },
    { name: "started", title: "Started", kind: "count" },
  ],
  rows: [
    ["east", "main", 3],
    ["west", "main", 1],
  ],
  totals: { started: 4 },
  currency: "",
  by: ["cluster", "cluster_queue"],
};

async function choicesIn(cluster: string): Promise<(string | null)[]> {
  serve([[/reports/, { body: REPORT }]]);
  await renderPart(
    <ClusterProvider cluster={cluster}>
      <ReportsPage filters={{}} onFilter={() => undefined} />
    </ClusterProvider>,
  );
  (await screen.findByRole("combobox", { name: "Group by" })).click();
  return (await screen.findAllByRole("option", { hidden: true }))
    .map((option) => option.textContent)
    .filter((name) => name === "Cluster" || name === "ClusterQueue");
}

it("tells queues of one name apart by their cluster", async () => {
  expect(await choicesIn("*")).toEqual(["Cluster", "ClusterQueue"]);
  expect(screen.getByText("east · main")).toBeTruthy();
  expect(screen.getByRole("link", { name: "Download CSV" }).getAttribute("href")).toContain("cluster=*");
});

it("groups by clusters only where there are several", async () => {
  expect(await choicesIn("east")).toEqual(["ClusterQueue"]);
});

it("says the reasons of preemptions in words, and leads to each of them", async () => {
  const columns = [
    { name: "cluster_queue", title: "Preempted in", kind: "text" },
    { name: "reason", title: "Reason", kind: "text" },
    { name: "preemptions", title: "Preemptions", kind: "count" },
  ];
  const rows = [["main", "InCohortReclamation", 3]];
  serve([[/reports/, { body: { ...REPORT, columns, rows, totals: {} } }]]);
  await renderPart(
    <ClusterProvider cluster="east">
      <ReportsPage filters={{ report: "preemptions" }} onFilter={() => undefined} />
    </ClusterProvider>,
  );
  expect(await screen.findByRole("cell", { name: "quota reclaimed" })).toBeTruthy();
  expect(screen.getByText("main · quota reclaimed")).toBeTruthy();
  expect(screen.queryByText("Preemptions: Preemptions")).toBeNull();
  const each = screen.getByRole("link", { name: "Each preemption" });
  expect(each.getAttribute("href")).toBe("/decisions?last=7d&action=Preempt");
});

const loopReport = (rows: unknown[][]) => ({
  ...REPORT,
  columns: [
    { name: "cluster_queue", title: "ClusterQueue", kind: "text" },
    { name: "other_cluster_queue", title: "Other ClusterQueue", kind: "text" },
    { name: "turns", title: "Turns", kind: "count" },
  ],
  rows,
  totals: {},
});

it.each([
  [[["red", "blue", 4]], "4"],
  [[], "No two queues displaced each other in this period."],
] as const)("shows loops below preemptions, or that there are none: %o", async (rows, shown) => {
  serve([
    [/reports\/loops/, { body: loopReport(rows.map((row) => [...row])) }],
    [/reports/, { body: { ...REPORT, rows: [], totals: {} } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="east">
      <ReportsPage filters={{ report: "preemptions" }} onFilter={() => undefined} />
    </ClusterProvider>,
  );
  expect(await screen.findByText("Queues that displace each other")).toBeTruthy();
  expect(await screen.findByText(shown)).toBeTruthy();
});

const GPU = "nvidia.com/gpu";
const queueRows = (rows: unknown[][]) => ({
  ...REPORT,
  columns: [
    { name: "cluster_queue", title: "ClusterQueue", kind: "text" },
    { name: "resource", title: "Resource", kind: "text" },
    { name: "missing_hours", title: "Missing", kind: "hours" },
  ],
  rows,
  totals: {},
  by: ["cluster_queue", "holder"],
});
const HOLDERS = {
  ...queueRows([]),
  columns: [
    { name: "cluster_queue", title: "ClusterQueue", kind: "text" },
    { name: "resource", title: "Resource", kind: "text" },
    { name: "holder", title: "Held by", kind: "text" },
    { name: "held_hours", title: "Held", kind: "hours" },
  ],
  rows: [
    ["red", GPU, "blue", 3],
    ["red", GPU, "(other queues)", 2],
    ["red", GPU, "(idle)", 1],
    ["pink", GPU, "red", 7],
    ["red", "cpu", "green", 5],
  ],
};
const NO_HISTORY = { since: REPORT.since, until: REPORT.until, step: 3600, times: [], series: [] };

it("shows who held what a queue missed, of the chosen resource and queue", async () => {
  const rows = [
    ["red", "cpu", 5],
    ["red", GPU, 6],
    ["pink", GPU, 7],
  ];
  serve([
    [/reports\/fairness.*by=holder/, { body: HOLDERS }],
    [/reports/, { body: queueRows(rows) }],
    [/history/, { body: NO_HISTORY }],
  ]);
  await renderPart(
    <ClusterProvider cluster="east">
      <ReportsPage filters={{ report: "fairness" }} onFilter={() => undefined} />
    </ClusterProvider>,
  );
  const held = await screen.findByRole("table", { name: "Holders of the quota that red lacked" });
  expect(held.textContent).toContain("blue");
  expect(held.textContent).toContain("queues that you may not see");
  expect(held.textContent).toContain("no queue: it was idle");
  expect(held.textContent).not.toContain("green");
  expect(screen.queryByRole("combobox", { name: "Group by" })).toBeNull();
  await userEvent.selectOptions(screen.getByRole("combobox", { name: "ClusterQueue" }), "pink");
  const other = await screen.findByRole("table", { name: "Holders of the quota that pink lacked" });
  expect(other.textContent).toContain("red");
});

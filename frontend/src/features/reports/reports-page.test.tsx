import { screen } from "@testing-library/react";
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

import { screen, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { QueuesOfClusters } from "./queues-of-clusters";

const cell = (used: number, nominal: number) => ({
  flavor: "a100",
  resource: "nvidia.com/gpu",
  nominal,
  borrowing_limit: null,
  lending_limit: null,
  used,
  borrowed: 0,
});
const queue = (cluster: string, active: boolean, usage: unknown[]) => ({
  uid: `main of ${cluster}`,
  cluster,
  name: "main",
  cohort: "all",
  pending: 7,
  admitted: 3,
  weighted_share: 12,
  usage,
  conditions: [{ type: "Active", status: active ? "True" : "False", reason: "r", message: "m" }],
});

beforeEach(() => {
  // jsdom lays nothing out; a frame of 400 px shows some ten rows.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
});

it("tells queues of one name apart by their cluster, and leads into it", async () => {
  const results = [queue("east", true, [cell(2, 8), cell(7, 8)]), queue("west", false, [])];
  serve([[/cluster-queues/, { body: { results, next: null } }]]);
  await renderPart(
    <ClusterProvider cluster="east,west">
      <QueuesOfClusters search="" onSearch={() => undefined} />
    </ClusterProvider>,
  );
  expect((await screen.findAllByText("Cluster")).length).toBeGreaterThan(0);
  const east = within((await screen.findByText("east")).closest("tr") as HTMLElement);
  expect(east.getByText("Active")).toBeTruthy();
  expect(east.getByText("7 / 8")).toBeTruthy();
  const hrefs = east.getAllByRole("link").map((link) => link.getAttribute("href"));
  expect(hrefs).toEqual(["/queues/main?cluster=east", "/cohorts/all?cluster=east"]);
  const west = within(screen.getByText("west").closest("tr") as HTMLElement);
  expect(west.getByText("Not active")).toBeTruthy();
});

it("searches by the names of queues and cohorts", async () => {
  serve([[/cluster-queues/, { body: { results: [queue("east", true, [])], next: null } }]]);
  await renderPart(
    <ClusterProvider cluster="*">
      <QueuesOfClusters search="nothing" onSearch={() => undefined} />
    </ClusterProvider>,
  );
  expect(await screen.findByText("No queue or cohort matches this name")).toBeTruthy();
});

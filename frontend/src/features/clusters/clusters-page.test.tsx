import { screen, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { ClusterOverview } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { ClustersPage } from "./clusters-page";

const WELL: ClusterOverview = {
  cluster: "east",
  mode: "schedule",
  problems: [],
  last_event_at: null,
  push: { unpushed: 0, refused: 0, lag_seconds: 0 },
  pending: 7,
  held: 0,
  reserving: 3,
  admitted: 3,
  nodes: 2,
  devices: 16,
  devices_in_use: 4,
  scarcest: { flavor: "a100", resource: "nvidia.com/gpu", nominal: 16, used: 15 },
};
const BEHIND: ClusterOverview = {
  ...WELL,
  cluster: "west",
  mode: "observe",
  problems: [
    { reason: "WatcherSilent", message: "" },
    { reason: "PushLags", message: "" },
  ],
  devices: 0,
  scarcest: null,
};

beforeEach(() => {
  // jsdom lays nothing out; a frame of 400 px shows some ten rows.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
});

it("has a line for each cluster, with its mode, its health and what is scarce", async () => {
  const calls = serve([[/cluster-overviews/, { body: { results: [WELL, BEHIND], next: null } }]]);
  await renderPart(
    <ClusterProvider cluster="*">
      <ClustersPage />
    </ClusterProvider>,
  );
  const east = within((await screen.findByText("east")).closest("tr") as HTMLElement);
  expect(east.getByText("Schedule")).toBeTruthy();
  expect(east.getByText("Healthy")).toBeTruthy();
  expect(east.getByText("15 / 16")).toBeTruthy();
  expect(east.getByText("4 / 16")).toBeTruthy();
  expect(east.getByRole("link").getAttribute("href")).toBe("/?cluster=east");
  const west = within(screen.getByText("west").closest("tr") as HTMLElement);
  expect(west.getByText("Watcher silent")).toBeTruthy();
  expect(west.getByText("and 1 more")).toBeTruthy();
  expect(calls.every(({ address }) => address.includes("cluster=*") || address.includes("cluster=%2A"))).toBe(
    true,
  );
});

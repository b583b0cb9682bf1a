import { screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { UserHolding } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { UserLimits } from "./user-limits";

const panel = (
  <ClusterProvider cluster="default">
    <UserLimits clusterQueue="research" />
  </ClusterProvider>
);

const ADA: UserHolding = {
  level: "ClusterQueue research",
  user: "ada",
  group: "",
  workloads: 2,
  max_workloads: 10,
  resources: [{ resource: "memory", held: 3 * 2 ** 30, limit: 8 * 2 ** 30, free: 5 * 2 ** 30 }],
};
const UNKNOWN: UserHolding = {
  level: "Cohort all",
  user: "",
  group: "",
  workloads: 1,
  max_workloads: 1,
  resources: [],
};

it("draws what each user holds of each limit", async () => {
  serve([[/cluster-queues\/research\/user-limits/, { body: { results: [ADA, UNKNOWN] } }]]);
  await renderPart(panel);
  await screen.findByText("ada");
  const bars = screen.getAllByRole("img").map((bar) => bar.getAttribute("aria-label"));
  expect(bars).toEqual(["workloads: 2 / 10", "memory: 3 / 8 GiB", "workloads: 1 / 1"]);
  expect(screen.getByText("not known")).toBeDefined();
});

it("names the groups", async () => {
  const groups = ["eng", "*"].map((group) => ({ ...UNKNOWN, group }));
  serve([[/user-limits/, { body: { results: groups } }]]);
  await renderPart(panel);
  await screen.findByText("group eng");
  expect(screen.getByText("all other groups")).toBeDefined();
  expect(screen.queryByText("not known")).toBeNull();
});

it("shows nothing where no user is limited", async () => {
  const calls = serve([[/user-limits/, { body: { results: [] } }]]);
  await renderPart(panel);
  await waitFor(() => expect(calls).toHaveLength(1));
  expect(screen.queryByRole("table")).toBeNull();
});

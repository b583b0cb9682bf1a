import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { DecisionWhy } from "@/components/decision-why";
import { renderPart } from "@/test-render";

const PREEMPTED = {
  action: "Preempt",
  reason: "InCohortReclamation",
  message: "Preempted to make room for a workload (uid 1) by reclaiming quota within the cohort",
};

it("names the workload that the room was made for, and leads to it", async () => {
  await renderPart(<DecisionWhy decision={{ ...PREEMPTED, detail: { preemptor: "team-b/rival" } }} />);
  const link = await screen.findByRole("link", { name: "team-b/rival" });
  expect(link.getAttribute("href")).toBe("/workloads/team-b/rival");
  expect(link.parentElement?.textContent).toBe("for team-b/rival · quota reclaimed");
});

it("says that a preemptor without a name is another tenant's", async () => {
  await renderPart(<DecisionWhy decision={{ ...PREEMPTED, detail: {} }} />);
  expect(await screen.findByText(/for a workload of another tenant/)).toBeTruthy();
  expect(screen.queryByRole("link")).toBeNull();
});

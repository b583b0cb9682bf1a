import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { ShadowPage } from "./shadow-page";

const counts = (agreed: number, differed: number) => ({
  agreed,
  differed,
  their_reservations: 0,
  our_reservations: 0,
  their_preemptions: 0,
  our_preemptions: 0,
  unfinished: 0,
  out_of_turn: 0,
});

it("has a line for each cluster in which something was compared", async () => {
  const body = {
    since: "2026-01-01T00:00:00Z",
    agreement: 0.9,
    totals: counts(9, 1),
    points: [],
    clusters: [
      { cluster: "east", agreement: 0.8, totals: counts(4, 1) },
      { cluster: "north", agreement: null, totals: counts(0, 0) },
      { cluster: "west", agreement: 1, totals: counts(5, 0) },
    ],
  };
  serve([
    [/differences/, { body: { results: [], next: null } }],
    [/shadow/, { body }],
  ]);
  await renderPart(
    <ClusterProvider cluster="*">
      <ShadowPage />
    </ClusterProvider>,
  );
  expect(await screen.findByText("90.0 %")).toBeTruthy();
  const east = screen.getByRole("link", { name: "east" });
  expect(east.getAttribute("href")).toBe("/shadow?cluster=east");
  expect(within(east.closest("tr") as HTMLElement).getByText("80.0 %")).toBeTruthy();
  expect(screen.queryByText("north")).toBeNull();
});

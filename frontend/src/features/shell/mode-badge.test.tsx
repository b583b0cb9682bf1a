import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { isMirrored } from "@/api/session";
import type { Session } from "@/api/types";
import { renderPart } from "@/test-render";
import { ModeBadge } from "./mode-badge";

const CLUSTERS: Session["clusters"] = [
  { name: "east", mode: "schedule" },
  { name: "west", mode: "observe" },
];

it("says who decides in the cluster on screen", async () => {
  await renderPart(
    <ClusterProvider cluster="west">
      <ModeBadge clusters={CLUSTERS} />
    </ClusterProvider>,
  );
  expect(screen.getByText("Observe").closest("[aria-label]")?.getAttribute("aria-label")).toContain(
    "nothing is written to the cluster",
  );
});

it("offers no changes where only the cluster itself makes them", () => {
  const session = { clusters: CLUSTERS } as Session;
  expect([isMirrored(session, "east"), isMirrored(session, "west"), isMirrored(session, "none")]).toEqual([
    false,
    true,
    false,
  ]);
});

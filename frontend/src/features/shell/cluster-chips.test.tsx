import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { ClusterSummary } from "@/api/types";
import { renderPart } from "@/test-render";
import { ClusterChips } from "./cluster-chips";
import { OneCluster } from "./one-cluster";

const CLUSTERS: ClusterSummary[] = ["east", "north", "west"].map((name) => ({ name, mode: "schedule" }));

it("leaves a cluster out, as the URL says it", async () => {
  const { history } = await renderPart(
    <ClusterProvider cluster="*">
      <ClusterChips clusters={CLUSTERS} />
    </ClusterProvider>,
  );
  await userEvent.click(screen.getByRole("checkbox", { name: "north" }));
  expect(decodeURIComponent(history.location.search)).toBe("?cluster=east,west");
});

it("asks for one of the clusters where a page shows one", async () => {
  await renderPart(
    <ClusterProvider cluster="east,west">
      <OneCluster clusters={CLUSTERS} />
    </ClusterProvider>,
  );
  expect(screen.getAllByRole("link").map((link) => link.textContent)).toEqual(["east", "west"]);
});

import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { AccuracyPage } from "./accuracy-page";

const NONE = {
  count: 0,
  unknown: 0,
  coverage: null,
  coverage_by_fifth: [],
  median_error_seconds: null,
  bias_seconds: null,
  mean_width_seconds: null,
};
const SOME = {
  count: 200,
  unknown: 4,
  coverage: 0.812,
  coverage_by_fifth: [0.8, 0.8, 0.8, 0.8, 0.86],
  median_error_seconds: 125,
  bias_seconds: -40,
  mean_width_seconds: 3600,
};

function show(figures: typeof NONE | typeof SOME) {
  const body = {
    since: "2026-01-05T09:00:00Z",
    renewed_at: null,
    stages: [
      { stage_seconds: 0, ...figures },
      { stage_seconds: 300, ...NONE },
    ],
    cluster_queues: figures.count === 0 ? [] : [{ cluster_queue: "research", ...figures }],
  };
  serve([[/studio\/accuracy/, { body }]]);
  return renderPart(
    <ClusterProvider cluster="east">
      <AccuracyPage />
    </ClusterProvider>,
  );
}

it("shows coverage, error, bias and width by age and by ClusterQueue", async () => {
  await show(SOME);
  const row = (await screen.findByText("research")).closest("tr");
  expect(row?.textContent).toBe("research200481 %2m 5s-40s1h");
  expect(screen.getByText("after 5m").closest("tr")?.textContent).toBe("after 5m00––––");
});

it("says that nothing was judged yet", async () => {
  await show(NONE);
  expect(await screen.findAllByText("No workload with an estimate has started in this period.")).toHaveLength(
    2,
  );
  expect(screen.getByText(/No studio has estimated a start yet/)).toBeTruthy();
});

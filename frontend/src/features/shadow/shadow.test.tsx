import { expect, it } from "vitest";
import type { Shadow } from "@/api/types";
import { choiceInWords } from "./shadow-columns";
import { agreementOverTime, mostDifferences } from "./shadow-page";

it("says what a scheduler made of a workload, and why", () => {
  const flavors = [{ name: "main", count: 2, flavors: { cpu: "spot", memory: "spot" } }];
  expect(choiceInWords({ act: "Reserve", cluster_queue: "main", flavors, reason: "", message: "" })).toBe(
    "Gets quota in main, main (2): spot",
  );
  expect(
    choiceInWords({
      act: "Wait",
      cluster_queue: "",
      flavors: [],
      reason: "WaitingForQuota",
      message: "1 more needed",
    }),
  ).toBe("Waits: 1 more needed");
});

it("draws no agreement where nothing was compared", () => {
  const point = {
    their_reservations: 0,
    our_reservations: 0,
    their_preemptions: 0,
    our_preemptions: 0,
    unfinished: 0,
    out_of_turn: 0,
  };
  const points: Shadow["points"] = [
    { at: "2026-01-01T00:00:00Z", agreed: 3, differed: 1, ...point },
    { at: "2026-01-01T01:00:00Z", agreed: 0, differed: 0, ...point },
  ];
  expect(mostDifferences(points)?.differed).toBe(1);
  expect(mostDifferences(points.slice(1))).toBeNull();
  const { times, lines } = agreementOverTime({ points });
  expect(times[1]).toBe(1767229200);
  expect(lines[0]?.values).toEqual([0.75, null]);
});

import { expect, it } from "vitest";
import {
  explainPendingReason,
  PENDING_REASONS,
  shortReason,
  startsAfter,
  startsAfterGates,
} from "./pending-reason";

it("has two or three words for each reason, never its token", () => {
  for (const reason of PENDING_REASONS) {
    expect(shortReason(reason)).not.toContain(reason);
    expect(shortReason(reason).split(" ").length).toBeLessThanOrEqual(4);
    expect(explainPendingReason(reason)).not.toBe("");
  }
});

it("writes the name of another reason in words", () => {
  expect(shortReason("PodsReadyTimeout")).toBe("pods ready timeout");
  expect(shortReason("Cancelled")).toBe("cancelled");
  expect(shortReason("")).toBe("");
});

it("names the jobs without their conditions", () => {
  expect(startsAfter(["prepare", "afterany:tune"])).toBe("It starts after prepare, tune.");
});

it("says the gates of jobs as the jobs that come before", () => {
  const message = "Admission is gated by: job.kueueweb.io/prepare,job.kueueweb.io/after:tune.";
  expect(startsAfterGates(message)).toBe("It starts after prepare, tune.");
});

it.each(["Admission is gated by: job.kueueweb.io/prepare,budget.", "It lacks quota."])(
  "leaves %s to its author",
  (message) => {
    expect(startsAfterGates(message)).toBeNull();
  },
);

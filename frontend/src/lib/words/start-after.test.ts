import { expect, it } from "vitest";
import { startsAfter, startsAfterGates } from "./start-after";

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

import { describe, expect, it } from "vitest";
import { expectedShort, expectedWords } from "./expected-start";

const NOW = Date.parse("2026-01-05T09:00:00Z");
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();

function known(low: number, middle: number, high: number, age = 10) {
  return {
    p10_at: at(low),
    p50_at: at(middle),
    p90_at: at(high),
    made_at: at(-age),
    reason: "" as const,
    message: "",
    compared: 50,
  };
}

function unknown(reason: "NoRunEnded" | "Outdated" | "NotEstimated") {
  return { p10_at: null, p50_at: null, p90_at: null, made_at: null, reason, message: "", compared: 0 };
}

describe("when a workload may start", () => {
  it("is an interval with its middle", () => {
    expect(expectedWords(known(300, 480, 1200), NOW)).toBe(
      "Expected to start in between 5 and 20 min, probably in 8 min.",
    );
    expect(expectedWords(known(1800, 7200, 36_000), NOW)).toBe(
      "Expected to start in between 0.5 and 10 h, probably in 2 h.",
    );
  });

  it("has no lower end where it may start at once", () => {
    expect(expectedWords(known(5, 40, 600), NOW)).toBe("Expected to start within 10 min, probably in 1 min.");
    expect(expectedWords(known(1, 5, 30), NOW)).toBe("Expected to start within a minute.");
    expect(expectedShort(known(5, 40, 600), NOW)).toBe("< 10 min");
  });

  it("says how old it is when no studio has renewed it", () => {
    expect(expectedWords(known(300, 480, 1200, 300), NOW)).toContain("Estimated 5m ago.");
    expect(expectedWords(known(300, 480, 1200, 60), NOW)).not.toContain("ago");
  });

  it("says why it is unknown", () => {
    expect(expectedWords(unknown("NoRunEnded"), NOW)).toContain("too few workloads have ended");
    expect(expectedWords(unknown("Outdated"), NOW)).toContain("no studio renews it");
    expect(expectedWords(unknown("NotEstimated"), NOW)).toBe("Start not estimated yet.");
    expect(expectedShort(unknown("NoRunEnded"), NOW)).toBe("–");
  });

  it("is nothing for a workload that does not wait", () => {
    expect(expectedWords(null, NOW)).toBe("");
  });
});

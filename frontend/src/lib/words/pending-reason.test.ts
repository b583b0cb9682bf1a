import { expect, it } from "vitest";
import { explainPendingReason, PENDING_REASONS, shortReason } from "./pending-reason";

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

import { expect, test } from "vitest";
import { shownMoment, writtenMoment } from "./moment";

test("a moment is written in UTC and shown in the reader's zone", () => {
  const at = new Date(2026, 11, 1, 9, 5);
  expect(writtenMoment(at)).toMatch(/^2026-1[12]-\d\dT\d\d:\d5:00Z$/);
  expect(shownMoment(writtenMoment(at))).toBe("2026-12-01T09:05");
});

test.each(["", "tomorrow"])("%j is no moment", (text) => {
  expect(shownMoment(text)).toBe("");
});

import { expect, it } from "vitest";
import { EMPTY_LOG, MAX_LOG_LINES, withPiece } from "./pod-log-lines";

it("joins a line that comes in two pieces", () => {
  const first = withPiece(EMPTY_LOG, "starting\nstep 1");
  expect(first).toEqual({ lines: ["starting"], rest: "step 1", dropped: 0 });
  expect(withPiece(first, "/50\n")).toEqual({ lines: ["starting", "step 1/50"], rest: "", dropped: 0 });
});

it("keeps empty lines", () => {
  expect(withPiece(EMPTY_LOG, "a\n\nb\n").lines).toEqual(["a", "", "b"]);
});

it("keeps the last lines of a long log and counts the others", () => {
  const text = Array.from({ length: MAX_LOG_LINES + 5 }, (_, number) => `${number}\n`).join("");
  const log = withPiece(withPiece(EMPTY_LOG, text), "last\n");
  expect(log.lines).toHaveLength(MAX_LOG_LINES);
  expect(log.lines.at(-1)).toBe("last");
  expect(log.dropped).toBe(6);
});

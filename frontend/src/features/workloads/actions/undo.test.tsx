import { expect, it } from "vitest";
import { undoOf } from "./undo";

it.each([
  ["hold", { kind: "release" }],
  ["release", { kind: "hold" }],
  ["requeue", undefined],
  ["priority", undefined],
  ["cancel", undefined],
] as const)("%s is taken back by %o", (kind, opposite) => {
  expect(undoOf(kind)).toEqual(opposite);
});

import { expect, it } from "vitest";
import { conditionColor } from "./conditions";

it.each([
  ["Admitted", "True", "var(--kw-good)"],
  ["Evicted", "True", "var(--kw-over)"],
  ["Preempted", "True", "var(--kw-over)"],
  ["Evicted", "False", "var(--kw-muted)"],
] as const)("%s %s is %s", (type, status, color) => {
  expect(conditionColor({ type, status })).toBe(color);
});

import { expect, it } from "vitest";
import { cordonState, nodeState } from "./node-state";

it.each([
  [{ ready: true, unschedulable: false, cordoned: false, draining: false }, "ready", undefined],
  [{ ready: true, unschedulable: true, cordoned: false, draining: false }, "cordoned", undefined],
  [{ ready: true, unschedulable: false, cordoned: true, draining: false }, "cordoned", "cordoned"],
  [{ ready: false, unschedulable: true, cordoned: true, draining: true }, "not-ready", "draining"],
] as const)("%o: the node is %s, and admins left it %s", (node, state, cordon) => {
  expect(nodeState(node)).toBe(state);
  expect(cordonState(node)).toBe(cordon);
});

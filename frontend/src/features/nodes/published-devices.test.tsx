import { expect, it } from "vitest";
import { factsOf, holderOf } from "./published-devices";

it("says what a published device is, and who has it", () => {
  expect(factsOf({ attributes: { model: "A100" }, capacity: { memory: "40Gi" } })).toBe(
    "memory: 40Gi, model: A100",
  );
  expect(holderOf({ claim: "team/held", usable: true })).toBe("team/held");
  expect(holderOf({ claim: "", usable: true })).toBe("Free");
  expect(holderOf({ claim: "", usable: false })).toContain("Not usable");
});

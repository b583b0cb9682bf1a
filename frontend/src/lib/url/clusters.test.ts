import { expect, it } from "vitest";
import { chosenClusters, isSeveral, writeClusters } from "./clusters";

const KNOWN = ["east", "north", "west"];

it("tells one cluster from several", () => {
  expect(["east", "east,west", "*"].map(isSeveral)).toEqual([false, true, true]);
});

it("reads and writes a choice", () => {
  expect(chosenClusters("*", KNOWN)).toEqual(KNOWN);
  expect(chosenClusters("west,east,gone", KNOWN)).toEqual(["east", "west"]);
  expect(writeClusters(["west", "east"], KNOWN)).toBe("east,west");
  expect(writeClusters(["west"], KNOWN)).toBe("west");
  expect(writeClusters(KNOWN, KNOWN)).toBe("*");
  expect(writeClusters([], KNOWN)).toBe("*");
});

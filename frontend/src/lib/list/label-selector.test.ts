import { expect, test } from "vitest";
import { joinSelector, type Match, requirement, splitSelector } from "./label-selector";

test.each<[Match, string, string | undefined]>([
  ["has", "", "team"],
  ["lacks", "", "!team"],
  ["is", "vision", "team=vision"],
  ["is", "", "team="],
  ["is-not", "vision", "team!=vision"],
  ["starts", "vis", "team^=vis"],
  ["starts", "", undefined],
  ["contains", "-", "team*=-"],
  ["one-of", "a, b", "team in (a, b)"],
  ["none-of", "a,b c", undefined],
  ["is", "two words", undefined],
])("%s %s", (match, value, expected) => {
  expect(requirement("team", match, value)).toBe(expected);
});

test("what is no key has no requirement", () => {
  expect(requirement("two words", "has", "")).toBeUndefined();
  expect(requirement("example.com/team", "has", "")).toBe("example.com/team");
});

test("a selector is taken apart at the commas between its requirements", () => {
  expect(splitSelector("team in (a,b),!old, tier=1")).toEqual(["team in (a,b)", "!old", "tier=1"]);
  expect(splitSelector(undefined)).toEqual([]);
  expect(joinSelector("team in (a,b)", "!old")).toBe("team in (a,b),!old");
  expect(joinSelector("!old", "!old")).toBe("!old");
});

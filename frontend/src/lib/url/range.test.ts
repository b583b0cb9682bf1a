import { expect, test } from "vitest";
import { parseRange } from "./range";

test("a range in the URL is one of those on offer; the default is left out", () => {
  expect(parseRange({ range: "7d" })).toEqual({ range: "7d" });
  expect(parseRange({ range: "1h" })).toEqual({});
  expect(parseRange({ range: "2y" })).toEqual({});
  expect(parseRange({ range: "toString" })).toEqual({});
});

import { expect, it } from "vitest";
import { parseNodeFilters } from "./node-filters";

it("keeps what it knows, and drops the rest", () => {
  const search = { search: 7, flavor: " a100 ", label: "", state: "not-ready", sort: "-cpu", bogus: "x" };
  expect(parseNodeFilters(search)).toEqual({ search: "7", flavor: "a100", state: "not-ready", sort: "-cpu" });
  expect(parseNodeFilters({ state: "bogus" })).toEqual({});
});

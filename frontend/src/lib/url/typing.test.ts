import { expect, it } from "vitest";
import { isTyping } from "./typing";

interface Search {
  search?: string;
  status?: string;
}
const typing = (before: Search, after: Search) => isTyping(before, after, ["search"]);

it("tells typing from choosing", () => {
  expect(typing({ search: "tr" }, { search: "tra" })).toBe(true);
  expect(typing({ search: "tr" }, {})).toBe(true);
  expect(typing({ search: "tr" }, { search: "tr", status: "Pending" })).toBe(false);
  expect(typing({ status: "Pending" }, {})).toBe(false);
});

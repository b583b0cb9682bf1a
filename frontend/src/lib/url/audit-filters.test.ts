import { expect, test } from "vitest";
import { parseAuditFilters } from "./audit-filters";

test("filters that the API does not take are dropped", () => {
  expect(parseAuditFilters({ verb: "steal", username: " bob ", name: 7, kind: "", more: "x" })).toEqual({
    username: "bob",
    name: "7",
  });
});

test("a verb that is known is kept", () => {
  expect(parseAuditFilters({ verb: "failed-login" })).toEqual({ verb: "failed-login" });
});

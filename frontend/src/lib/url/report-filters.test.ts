import { expect, test } from "vitest";
import { parseReportFilters } from "./report-filters";

test("what the URL says of a report is kept, the defaults and the unknown are left out", () => {
  expect(parseReportFilters({ report: "idle", last: "30d", by: "user,size" })).toEqual({
    report: "idle",
    last: "30d",
    by: "user,size",
  });
  expect(parseReportFilters({ report: "waits", last: "7d", by: "a b" })).toEqual({});
  expect(parseReportFilters({ report: "moon", last: "4d" })).toEqual({});
});

import { expect, test } from "vitest";
import { parseReportFilters } from "./report-filters";

test("what the URL says of a report is kept, the defaults and the unknown are left out", () => {
  expect(parseReportFilters({ report: "idle", days: "7", by: "user,size" })).toEqual({
    report: "idle",
    days: 7,
    by: "user,size",
  });
  expect(parseReportFilters({ report: "waits", days: 30, by: "a b" })).toEqual({});
  expect(parseReportFilters({ report: "moon", days: 4 })).toEqual({});
});

import { expect, it } from "vitest";
import {
  countFilters,
  drillInto,
  filterQuery,
  parseOpened,
  parseWorkloadFilters,
  parseWorkloadView,
} from "./workload-filters";

it("takes the filters that the API knows", () => {
  const search = { state: "Pending", namespace: "research", cluster_queue: "gpu", search: "train" };
  expect(parseWorkloadFilters(search)).toEqual(search);
});

it("leaves out what is empty, unknown or of another kind", () => {
  const search = {
    state: "Sleeping",
    namespace: "  ",
    cluster_queue: ["a"],
    colour: "red",
    local_queue: null,
  };
  expect(parseWorkloadFilters(search)).toEqual({});
});

it("reads a number as the text that was typed", () => {
  expect(parseWorkloadFilters({ search: 42 })).toEqual({ search: "42" });
});

it("counts the filters that are set", () => {
  expect(countFilters(parseWorkloadFilters({ state: "Running", search: "x", namespace: "" }))).toBe(2);
});

it("keeps the order, the groups and the columns that are known", () => {
  const view = {
    sort: "-priority",
    group: "label:example.com/team",
    hide: "why,requests",
    columns: "label:team,submitted_by",
    widths: "name~300",
  };
  expect(parseWorkloadView({ ...view, search: "x" })).toEqual(view);
  expect(parseWorkloadView({ sort: "bogus", group: "colour", hide: "", columns: "x", widths: "y" })).toEqual(
    {},
  );
});

it("asks the API for the filters, a range of time among them", () => {
  const filters = parseWorkloadFilters({ state: "Pending", label: "team", last: "1h", time: "admitted" });
  expect(filterQuery(filters, Date.parse("2026-01-05T09:00:00Z"))).toEqual({
    state: ["Pending"],
    label: "team",
    admitted_since: "2026-01-05T08:00:00.000Z",
  });
});

it("opens a group as the filters that it stands for", () => {
  expect(drillInto({ state: "Pending" }, "reason", "WaitingForQuota")).toEqual({
    state: "Pending",
    reason: "WaitingForQuota",
  });
  expect(drillInto({ label: "tier=1" }, "label:team", "vision")).toEqual({ label: "tier=1,team=vision" });
  expect(drillInto({}, "label:team", "")).toEqual({ label: "!team" });
  expect(drillInto({}, "node", "")).toBeUndefined();
});

it("opens a workload beside the list by its namespace and name", () => {
  expect(parseOpened({ open: "team/train-1" })).toEqual({ open: "team/train-1" });
  expect([parseOpened({ open: "train-1" }), parseOpened({ open: "a/b/c" }), parseOpened({})]).toEqual([
    {},
    {},
    {},
  ]);
});

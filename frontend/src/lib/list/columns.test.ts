import { expect, test } from "vitest";
import { annotationsOf, formatWidths, MAX_ADDED, parseColumns, parseWidths } from "./columns";

test("columns that were added are read once each, and what is none is left out", () => {
  expect(
    parseColumns("label:team,annotation:example.com/cost,submitted_by,label:team,label:,label:a b,colour"),
  ).toEqual(["label:team", "annotation:example.com/cost", "submitted_by"]);
  expect(parseColumns("")).toEqual([]);
  const many = Array.from({ length: 12 }, (_, place) => `label:l${place}`).join(",");
  expect(parseColumns(many)).toHaveLength(MAX_ADDED);
  expect(annotationsOf(parseColumns("label:team,annotation:example.com/cost,annotation:note"))).toEqual([
    "example.com/cost",
    "note",
  ]);
});

test("widths are read as they were written", () => {
  const widths = { name: 412, "label:example.com/team": 120 };
  expect(parseWidths(formatWidths(widths))).toEqual(widths);
  expect(parseWidths("name~wide,~90,age,status~7,why~99999,queue~90")).toEqual({ queue: 90 });
});

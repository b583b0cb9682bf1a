import { expect, test } from "vitest";
import { forgetView, readViews, saveView } from "./saved-views";

function storeOf(text: string | null) {
  let kept = text;
  return {
    getItem: () => kept,
    setItem: (_: string, value: string) => {
      kept = value;
    },
  };
}

test("a view is kept under its name, once, and forgotten", () => {
  const store = storeOf(null);
  saveView(store, { name: "waiting", search: { status: "Pending" } });
  saveView(store, { name: "mine", search: { submitted_by: "ada" } });
  saveView(store, { name: "waiting", search: { status: "Evicted" } });
  expect(readViews(store)).toEqual([
    { name: "mine", search: { submitted_by: "ada" } },
    { name: "waiting", search: { status: "Evicted" } },
  ]);
  forgetView(store, "mine");
  expect(readViews(store).map(({ name }) => name)).toEqual(["waiting"]);
});

test.each(["{", "7", '[{"name": 1}]'])("what is no list of views is none: %s", (text) => {
  expect(readViews(storeOf(text))).toEqual([]);
});

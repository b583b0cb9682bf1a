import { expect, test } from "vitest";
import { dropStoredViews, readStoredViews } from "./stored-views";

function storeOf(text: string | null) {
  let kept = text;
  return {
    getItem: () => kept,
    setItem: (_: string, value: string) => {
      kept = value;
    },
    removeItem: () => {
      kept = null;
    },
  };
}

test("what was taken over leaves the browser, and the rest stays", () => {
  const store = storeOf('[{"name": "a", "search": {"status": "Pending"}}, {"name": "b", "search": {}}]');
  dropStoredViews(store, ["a"]);
  expect(readStoredViews(store)).toEqual([{ name: "b", search: {} }]);
  dropStoredViews(store, []);
  expect(readStoredViews(store)).toHaveLength(1);
  dropStoredViews(store, ["b"]);
  expect(store.getItem()).toBeNull();
});

test.each([null, "{", "7", '[{"name": 1}]', '[{"name": "a", "search": {"x": 1}}]'])(
  "what is no list of views is none: %s",
  (text) => {
    expect(readStoredViews(storeOf(text))).toEqual([]);
  },
);

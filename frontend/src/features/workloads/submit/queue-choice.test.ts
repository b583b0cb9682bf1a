import { expect, test } from "vitest";
import type { Preview } from "@/api/types";
import { bestQueue, placeOfLast, rankOf } from "./queue-choice";

const preview = (...states: string[]) =>
  ({ workloads: states.map((state) => ({ explanation: { state } })) }) as unknown as Pick<
    Preview,
    "workloads"
  >;

test("a submission starts as late as the last of its workloads", () => {
  expect(rankOf(preview("FitsNow"))).toBe(0);
  expect(rankOf(preview("FitsNow", "CannotStart", "Waits"))).toBe(4);
  expect(rankOf(preview())).toBe(0);
});

test("queues are tried until one starts it now", async () => {
  const tried: number[] = [];
  const answers = [preview("CannotStart"), preview("Waits"), preview("FitsNow"), preview("FitsNow")];
  const best = await bestQueue([0, 1, 2, 3], async (place) => {
    tried.push(place);
    return answers[place] ?? preview();
  });
  expect(best).toEqual({ place: 2, rank: 0 });
  expect(tried).toEqual([0, 1, 2]);
});

test("the first of equal queues is kept, and a queue that refuses it is no choice", async () => {
  const best = await bestQueue([0, 1, 2], async (place) => {
    if (place === 0) throw new Error("refused");
    return preview("Waits");
  });
  expect(best).toEqual({ place: 1, rank: 2 });
  expect(await bestQueue([0], () => Promise.reject(new Error("refused")))).toBeNull();
});

test("the queue used last comes first, and the first one without it", () => {
  const queues = [
    { namespace: "a", name: "x" },
    { namespace: "b", name: "y" },
  ];
  expect(placeOfLast(queues, "b/y")).toBe(1);
  expect(placeOfLast(queues, "b/gone")).toBe(0);
  expect(placeOfLast(queues, null)).toBe(0);
});

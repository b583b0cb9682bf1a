import { expect, test } from "vitest";
import { daysOf, parseCalendarPeriod, shifted } from "./calendar-period";

const NOW = new Date(2026, 11, 1, 14, 30).getTime();

test.each([
  [{}, {}],
  [
    { from: "2026-12-01", days: "28" },
    { from: "2026-12-01", days: 28 },
  ],
  [
    { from: "2026-12-01", days: 28 },
    { from: "2026-12-01", days: 28 },
  ],
  [{ from: "2026-13-01", days: 3 }, {}],
  [{ from: "yesterday" }, {}],
])("%j is read as %j", (search, period) => {
  expect(parseCalendarPeriod(search)).toEqual(period);
});

test("a week begins today, and its days begin at midnight", () => {
  const days = daysOf({}, NOW);
  expect(days).toHaveLength(8);
  expect(days[0]).toBe(new Date(2026, 11, 1).getTime());
  expect(days[7]).toBe(new Date(2026, 11, 8).getTime());
});

test("the next and the last period touch this one", () => {
  expect(shifted({}, 1, NOW)).toEqual({ from: "2026-12-08" });
  expect(shifted({ from: "2026-12-08", days: 28 }, -1, NOW)).toEqual({ from: "2026-11-10", days: 28 });
});

import { expect, test } from "vitest";
import { nodeUse } from "./node-use-series";

const sample = (at: string, busy: number | null, used: number | null, celsius: number | null) => ({
  at,
  utilization_percent: busy,
  memory_used_mib: used,
  temperature_celsius: celsius,
});

test("samples of one step are put together", () => {
  const series = nodeUse(
    [
      {
        memoryMib: 100,
        samples: [sample("2026-01-05T09:05:00Z", 40, 10, 60), sample("2026-01-05T09:00:00Z", 20, 50, null)],
      },
      { memoryMib: 300, samples: [sample("2026-01-05T09:00:04Z", 60, 50, 71)] },
    ],
    15,
  );
  const start = Date.parse("2026-01-05T09:00:00Z") / 1000;
  expect(series).toEqual({
    times: [start, start + 300],
    busy: [40, 40],
    memory: [25, 10],
    hottest: [71, 60],
  });
});

test("a figure that no device reports has no value", () => {
  const series = nodeUse(
    [{ memoryMib: 100, samples: [sample("2026-01-05T09:00:00Z", null, null, null)] }],
    15,
  );
  expect([series.busy, series.memory, series.hottest]).toEqual([[null], [null], [null]]);
});

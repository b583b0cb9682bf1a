/** The range of time that the charts of a page show, as it stands in the URL. */
import { parseTimeRange, type Range, type TimeRange } from "./time-range";

export const CHART_RANGE: Range = "1h";
/** Charts look no further back than the server keeps series. */
export const CHART_RANGES = ["15m", "1h", "6h", "24h", "7d", "30d", "90d"] as const satisfies Range[];

export function parseChartRange(search: Record<string, unknown>): TimeRange {
  return parseTimeRange(search, CHART_RANGE);
}

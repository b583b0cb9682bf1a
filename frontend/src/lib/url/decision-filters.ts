/** The filters of the decision log as they stand in the URL. */
import { parseTexts } from "./texts";
import { parseTimeRange, type TimeRange } from "./time-range";

const FILTERS = ["action", "reason", "namespace", "cluster_queue", "workload", "search"] as const;

export type DecisionFilters = Partial<Record<(typeof FILTERS)[number], string>> & TimeRange;

export function parseDecisionFilters(search: Record<string, unknown>): DecisionFilters {
  return { ...parseTexts(search, FILTERS), ...parseTimeRange(search) };
}

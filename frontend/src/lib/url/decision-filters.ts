/** The filters of the decision log as they stand in the URL and as the API takes them. */
import { parseTexts } from "./texts";

const FILTERS = ["action", "reason", "namespace", "cluster_queue", "workload", "search"] as const;

export type DecisionFilters = Partial<Record<(typeof FILTERS)[number], string>>;

export function parseDecisionFilters(search: Record<string, unknown>): DecisionFilters {
  return parseTexts(search, FILTERS);
}

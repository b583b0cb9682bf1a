/** The filters of the decision log as they stand in the URL and as the API takes them. */

const FILTERS = ["action", "reason", "namespace", "cluster_queue", "workload", "search"] as const;

export type DecisionFilters = Partial<Record<(typeof FILTERS)[number], string>>;

export function parseDecisionFilters(search: Record<string, unknown>): DecisionFilters {
  const filters: DecisionFilters = {};
  for (const name of FILTERS) {
    const value = search[name];
    const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : "";
    if (text !== "") filters[name] = text;
  }
  return filters;
}

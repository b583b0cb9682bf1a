/** The search of the page of flows in its address. */

export interface FlowFilters {
  search?: string;
}

export function parseFlowFilters(search: Record<string, unknown>): FlowFilters {
  return typeof search.search === "string" && search.search !== "" ? { search: search.search } : {};
}

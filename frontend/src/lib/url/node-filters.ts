/** The filters and the order of the list of nodes, as they stand in the URL. */
import { NODE_STATES, type NodeState } from "../words/node-state";
import { parseTexts } from "./texts";

export interface NodeFilters {
  search?: string;
  flavor?: string;
  /** "key" or "key=value". */
  label?: string;
  state?: NodeState;
  /** A column, "-" before it for the largest first. */
  sort?: string;
}

const TEXT_FILTERS = ["search", "flavor", "label", "sort"] as const;

export function parseNodeFilters(search: Record<string, unknown>): NodeFilters {
  const filters: NodeFilters = parseTexts(search, TEXT_FILTERS);
  const state = NODE_STATES.find((known) => known === search.state);
  if (state !== undefined) filters.state = state;
  return filters;
}

/** The filters of the workload list as they stand in the URL and as the API takes them. */
import { isWorkloadStatus, type WorkloadStatus } from "../words/workload-status";
import { parseTexts } from "./texts";

export interface WorkloadFilters {
  status?: WorkloadStatus;
  cluster_queue?: string;
  local_queue?: string;
  namespace?: string;
  priority_class?: string;
  reason?: string;
  submitted_by?: string;
  search?: string;
}

const TEXT_FILTERS = [
  "cluster_queue",
  "local_queue",
  "namespace",
  "priority_class",
  "reason",
  "submitted_by",
  "search",
] as const;

/** The filters of a URL's search; what is empty or unknown is left out, so that two equal views have equal keys. */
export function parseWorkloadFilters(search: Record<string, unknown>): WorkloadFilters {
  const filters: WorkloadFilters = parseTexts(search, TEXT_FILTERS);
  if (isWorkloadStatus(search.status)) filters.status = search.status;
  return filters;
}

export function countFilters(filters: WorkloadFilters): number {
  return Object.keys(filters).length;
}

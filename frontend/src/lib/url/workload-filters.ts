/** The filters of the workload list as they stand in the URL and as the API takes them. */
import { isWorkloadStatus, type WorkloadStatus } from "../words/workload-status";
import { parseTexts } from "./texts";
import { parseTimeRange, type TimeQuery, type TimeRange, timeQuery } from "./time-range";

export interface WorkloadFilters extends TimeRange {
  status?: WorkloadStatus;
  cluster_queue?: string;
  local_queue?: string;
  namespace?: string;
  priority_class?: string;
  reason?: string;
  submitted_by?: string;
  node?: string;
  resource?: string;
  /** "key" or "key=value". */
  label?: string;
  search?: string;
}

const TEXT_FILTERS = [
  "cluster_queue",
  "local_queue",
  "namespace",
  "priority_class",
  "reason",
  "submitted_by",
  "node",
  "resource",
  "label",
  "search",
] as const;

/** The filters of a URL's search; what is empty or unknown is left out, so that two equal views have equal keys. */
export function parseWorkloadFilters(search: Record<string, unknown>): WorkloadFilters {
  const filters: WorkloadFilters = { ...parseTexts(search, TEXT_FILTERS), ...parseTimeRange(search) };
  if (isWorkloadStatus(search.status)) filters.status = search.status;
  return filters;
}

type PlainFilters = Omit<WorkloadFilters, keyof TimeRange | "status">;

/** The filters as the API takes them. */
export function filterQuery(
  { status, time, last, since, until, ...plain }: WorkloadFilters,
  nowMs: number,
): PlainFilters & TimeQuery & { status?: WorkloadStatus[] } {
  const range = parseTimeRange({ time, last, since, until });
  return { ...plain, ...timeQuery(range, nowMs), ...(status === undefined ? {} : { status: [status] }) };
}

export function countFilters(filters: WorkloadFilters): number {
  return Object.keys(filters).length;
}

export const WORKLOAD_GROUPS = [
  "namespace",
  "cluster_queue",
  "local_queue",
  "priority_class",
  "reason",
  "submitted_by",
] as const;
export type WorkloadGroup = (typeof WORKLOAD_GROUPS)[number];

const ORDERS = ["name", "namespace", "status", "priority", "id"];

/** How the list looks: its order, its groups and the columns that are left out. */
export interface WorkloadView {
  /** A column, "-" before it for the largest first; the newest first without. */
  sort?: string;
  group?: WorkloadGroup;
  /** Columns, with commas between them. */
  hide?: string;
}

export type WorkloadSearch = WorkloadFilters & WorkloadView;

export function parseWorkloadView(search: Record<string, unknown>): WorkloadView {
  const { sort, hide } = parseTexts(search, ["sort", "hide"]);
  const view: WorkloadView = hide === undefined ? {} : { hide };
  if (sort !== undefined && ORDERS.includes(sort.replace("-", ""))) view.sort = sort;
  const group = WORKLOAD_GROUPS.find((known) => known === search.group);
  if (group !== undefined) view.group = group;
  return view;
}

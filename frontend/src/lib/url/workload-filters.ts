/** The filters of the workload list as they stand in the URL and as the API takes them. */

import { formatWidths, isKey, parseColumns, parseWidths } from "../list/columns";
import { joinSelector } from "../list/label-selector";
import { isWorkloadState, type WorkloadState } from "../words/workload-state";
import { parseTexts } from "./texts";
import {
  parseWorkloadTimeRange,
  type TimeQuery,
  type WorkloadTimeRange,
  workloadTimeQuery,
} from "./time-range";

export interface WorkloadFilters extends WorkloadTimeRange {
  state?: WorkloadState;
  cluster_queue?: string;
  local_queue?: string;
  namespace?: string;
  priority_class?: string;
  reason?: string;
  submitted_by?: string;
  node?: string;
  resource?: string;
  /** A label selector. */
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
  const filters: WorkloadFilters = { ...parseTexts(search, TEXT_FILTERS), ...parseWorkloadTimeRange(search) };
  if (isWorkloadState(search.state)) filters.state = search.state;
  return filters;
}

type PlainFilters = Omit<WorkloadFilters, keyof WorkloadTimeRange | "state">;

/** The filters as the API takes them. */
export function filterQuery(
  { state, time, last, since, until, ...plain }: WorkloadFilters,
  nowMs: number,
): PlainFilters & TimeQuery & { state?: WorkloadState[] } {
  const range = parseWorkloadTimeRange({ time, last, since, until });
  return { ...plain, ...workloadTimeQuery(range, nowMs), ...(state === undefined ? {} : { state: [state] }) };
}

export function countFilters(filters: WorkloadFilters): number {
  return Object.keys(filters).length;
}

export const PLAIN_GROUPS = [
  "state",
  "namespace",
  "cluster_queue",
  "local_queue",
  "priority_class",
  "reason",
  "submitted_by",
  "node",
] as const;
export type PlainGroup = (typeof PLAIN_GROUPS)[number];
/** The group by which workloads are counted: a field, or the value of a label. */
export type WorkloadGroup = PlainGroup | `label:${string}`;

export function isPlainGroup(group: string): group is PlainGroup {
  return PLAIN_GROUPS.some((known) => known === group);
}

/** The key of the label that a group is of. */
export function labelOfGroup(group: string): string {
  return group.slice("label:".length);
}

function isGroup(text: unknown): text is WorkloadGroup {
  if (typeof text !== "string") return false;
  return isPlainGroup(text) || (text.startsWith("label:") && isKey(labelOfGroup(text)));
}

/** The filters of the list that a group stands for; undefined where no filter says so. */
export function drillInto(
  filters: WorkloadFilters,
  group: WorkloadGroup,
  value: string,
): WorkloadFilters | undefined {
  if (isPlainGroup(group))
    return value === "" ? undefined : parseWorkloadFilters({ ...filters, [group]: value });
  const key = labelOfGroup(group);
  return { ...filters, label: joinSelector(filters.label, value === "" ? `!${key}` : `${key}=${value}`) };
}

const ORDERS = ["name", "namespace", "status", "priority", "id", "cluster_queue", "reason", "submitted_by"];

/** How the list looks: its order, its groups, its columns and their widths. */
export interface WorkloadView {
  /** A column, "-" before it for the largest first; the newest first without. */
  sort?: string;
  group?: WorkloadGroup;
  /** Columns that are left out, with commas between them. */
  hide?: string;
  /** Columns that were added; `parseColumns` reads them. */
  columns?: string;
  /** The widths in the form of `formatWidths`. */
  widths?: string;
}

export type WorkloadSearch = WorkloadFilters & WorkloadView & OpenedWorkload;

export interface OpenedWorkload {
  /** The workload that stands beside the list, as namespace/name. */
  open?: string;
}

export function parseOpened({ open }: Record<string, unknown>): OpenedWorkload {
  return typeof open === "string" && /^[^/]+\/[^/]+$/.test(open) ? { open } : {};
}

export function parseWorkloadView(search: Record<string, unknown>): WorkloadView {
  const { sort, hide, columns, widths } = parseTexts(search, ["sort", "hide", "columns", "widths"]);
  const view: WorkloadView = hide === undefined ? {} : { hide };
  if (sort !== undefined && ORDERS.includes(sort.replace("-", ""))) view.sort = sort;
  if (isGroup(search.group)) view.group = search.group;
  const added = parseColumns(columns).join(",");
  if (added !== "") view.columns = added;
  const kept = formatWidths(parseWidths(widths));
  if (kept !== "") view.widths = kept;
  return view;
}

/** The report, its period and its groups, in the URL's form. */
import { parseTimeRange, type Range, type TimeRange } from "./time-range";

export const REPORT_KINDS = ["waits", "usage", "idle", "preemptions", "fairness"] as const;
export const REPORT_RANGES = ["24h", "7d", "30d", "90d", "365d"] as const satisfies Range[];
export const REPORT_RANGE: Range = "7d";

export interface ReportFilters extends TimeRange {
  report?: (typeof REPORT_KINDS)[number];
  /** With commas between them. */
  by?: string;
  /** The resource that the report on use shows. */
  resource?: string;
}

export function parseReportFilters(search: Record<string, unknown>): ReportFilters {
  const filters: ReportFilters = parseTimeRange(search, REPORT_RANGE);
  const report = REPORT_KINDS.find((kind) => kind === search.report);
  if (report !== undefined && report !== "waits") filters.report = report;
  if (typeof search.by === "string" && /^[a-z_]+(,[a-z_]+)*$/.test(search.by)) filters.by = search.by;
  if (typeof search.resource === "string" && search.resource !== "") filters.resource = search.resource;
  return filters;
}

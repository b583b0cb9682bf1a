/** Which report, of how many days and grouped by what, as it stands in the URL. */

export const REPORT_KINDS = ["waits", "usage", "idle", "preemptions"] as const;
export const REPORT_DAYS = [1, 7, 30, 90, 365] as const;

export interface ReportFilters {
  report?: (typeof REPORT_KINDS)[number];
  days?: (typeof REPORT_DAYS)[number];
  /** With commas between them. */
  by?: string;
}

export function parseReportFilters(search: Record<string, unknown>): ReportFilters {
  const filters: ReportFilters = {};
  const report = REPORT_KINDS.find((kind) => kind === search.report);
  if (report !== undefined && report !== "waits") filters.report = report;
  const days = REPORT_DAYS.find((known) => known === Number(search.days));
  if (days !== undefined && days !== 30) filters.days = days;
  if (typeof search.by === "string" && /^[a-z_]+(,[a-z_]+)*$/.test(search.by)) filters.by = search.by;
  return filters;
}

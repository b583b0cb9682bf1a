/** Reports on what was, as the server counts them. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { basePath } from "@/lib/url/base-path";
import { boundsOf, type TimeRange } from "@/lib/url/time-range";
import { answer, api } from "./client";
import type { components, paths } from "./schema.gen";

export type Report = components["schemas"]["Report"];
export type ReportColumn = components["schemas"]["ReportColumn"];
export type ReportKind = paths["/api/v1/reports/{kind}/"]["get"]["parameters"]["path"]["kind"];
export type ReportGroup = NonNullable<
  NonNullable<paths["/api/v1/reports/{kind}/"]["get"]["parameters"]["query"]>["by"]
>[number];

export interface ReportSelection {
  kind: ReportKind;
  by: readonly ReportGroup[];
  range: TimeRange;
}

function queryOf(cluster: string, { by, range }: ReportSelection) {
  return { cluster, ...boundsOf(range, Date.now()), ...(by.length > 0 ? { by: [...by] } : {}) };
}

export function reportQuery(cluster: string, selection: ReportSelection) {
  const { kind, by, range } = selection;
  return queryOptions({
    queryKey: ["report", cluster, kind, by, range] as const,
    queryFn: ({ signal }) =>
      answer<Report>(
        api.GET("/api/v1/reports/{kind}/", {
          params: { path: { kind }, query: queryOf(cluster, selection) },
          signal,
        }) as Promise<{ data?: Report }>,
      ),
    placeholderData: keepPreviousData,
  });
}

/** The address of the report as CSV. */
export function reportCsvUrl(cluster: string, selection: ReportSelection): string {
  const { by = [], ...query } = queryOf(cluster, selection);
  const search = new URLSearchParams({ ...query, format: "csv" });
  for (const name of by) search.append("by", name);
  return `${basePath}/api/v1/reports/${selection.kind}/?${search}`;
}

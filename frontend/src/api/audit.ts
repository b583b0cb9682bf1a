/** The audit: each change with its author, time and origin. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { AuditFilters } from "@/lib/url/audit-filters";
import { basePath } from "@/lib/url/base-path";
import { type TimeRange, withBounds } from "@/lib/url/time-range";
import { after, answer, api } from "./client";

const PAGE_SIZE = 100;

/** All records that the filters leave, the newest first. */
export function auditQuery(cluster: string, filters: AuditFilters) {
  return infiniteQueryOptions({
    queryKey: ["audit", cluster, filters] as const,
    queryFn: ({ pageParam, signal }) => {
      const { verb, ...found } = withBounds(filters, Date.now());
      const verbs = verb === undefined ? {} : { verb: [verb] };
      const params = { query: { cluster, ...found, ...verbs, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/audit/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

const MAX_MARKED = 200;
/** Edits of a cluster's sharing; a workload's own life is in the decisions. */
const EDITED = new Set([
  "ClusterQueue",
  "Cohort",
  "LocalQueue",
  "ResourceFlavor",
  "Configuration",
  "ConfigMap",
]);

/** The newest edits of queues, flavors and settings in a range of time, for the marks of charts. */
export function markedEditsQuery(cluster: string, range: TimeRange) {
  return queryOptions({
    queryKey: ["audit", cluster, "marked", range] as const,
    queryFn: async ({ signal }) => {
      const verb = ["update" as const];
      const query = { cluster, verb, ...withBounds(range, Date.now()), limit: MAX_MARKED };
      const page = await answer(api.GET("/api/v1/audit/", { params: { query }, signal }));
      return { ...page, results: page.results.filter(({ kind }) => EDITED.has(kind)) };
    },
    refetchInterval: range.until === undefined ? 15_000 : false,
  });
}

/** The address of the same as a file. */
export function auditExport(cluster: string, filters: AuditFilters, format: "csv" | "jsonl"): string {
  return `${basePath}/api/v1/audit/export/?${new URLSearchParams({ cluster, ...withBounds(filters, Date.now()), format })}`;
}

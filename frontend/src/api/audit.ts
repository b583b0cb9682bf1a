/** Who did what, when and from where. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import type { AuditFilters } from "@/lib/url/audit-filters";
import { basePath } from "@/lib/url/base-path";
import { after, answer, api } from "./client";

const PAGE_SIZE = 100;

/** All records that the filters leave, the newest first. */
export function auditQuery(cluster: string, filters: AuditFilters) {
  return infiniteQueryOptions({
    queryKey: ["audit", cluster, filters] as const,
    queryFn: ({ pageParam, signal }) => {
      const params = { query: { cluster, ...filters, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/audit/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

/** The address of the same as a file. */
export function auditExport(cluster: string, filters: AuditFilters, format: "csv" | "jsonl"): string {
  return `${basePath}/api/v1/audit/export/?${new URLSearchParams({ cluster, ...filters, as: format })}`;
}

/** The state of the scheduler itself, and what it decided last. */
import { queryOptions } from "@tanstack/react-query";
import { endpoint, request } from "./client";
import type { Decision, Overview, Page } from "./types";

export function overviewQuery(cluster: string) {
  return queryOptions({
    queryKey: ["overview", cluster] as const,
    queryFn: ({ signal }) => request<Overview>(endpoint("overview/", { cluster }), { signal }),
    refetchInterval: 5_000,
  });
}

export function decisionsQuery(cluster: string, limit: number) {
  return queryOptions({
    queryKey: ["decisions", cluster, limit] as const,
    queryFn: ({ signal }) => request<Page<Decision>>(endpoint("decisions/", { cluster, limit }), { signal }),
    refetchInterval: 5_000,
  });
}

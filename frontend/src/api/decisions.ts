/** The decision log: it outlives the workloads that it tells of. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { DecisionFilters } from "@/lib/decision-filters";
import { endpoint, request } from "./client";
import type { Decision, Page } from "./types";

const PAGE_SIZE = 100;

/** The newest few. */
export function latestDecisionsQuery(cluster: string, limit: number) {
  return queryOptions({
    queryKey: ["decisions", cluster, "latest", limit] as const,
    queryFn: ({ signal }) => request<Page<Decision>>(endpoint("decisions/", { cluster, limit }), { signal }),
    refetchInterval: 5_000,
  });
}

/** All of them, the newest first. */
export function decisionsQuery(cluster: string, filters: DecisionFilters) {
  return infiniteQueryOptions({
    queryKey: ["decisions", cluster, "list", filters] as const,
    queryFn: ({ pageParam, signal }) =>
      request<Page<Decision>>(
        endpoint("decisions/", { cluster, ...filters, after: pageParam, limit: PAGE_SIZE }),
        {
          signal,
        },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

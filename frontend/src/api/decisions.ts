/** The decision log: it outlives the workloads that it tells of. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { DecisionFilters } from "@/lib/decision-filters";
import { after, answer, api } from "./client";

const PAGE_SIZE = 100;

/** The newest few. */
export function latestDecisionsQuery(cluster: string, limit: number) {
  const params = { query: { cluster, limit } };
  return queryOptions({
    queryKey: ["decisions", cluster, "latest", limit] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/decisions/", { params, signal })),
    refetchInterval: 5_000,
  });
}

/** All of them, the newest first. */
export function decisionsQuery(cluster: string, filters: DecisionFilters) {
  return infiniteQueryOptions({
    queryKey: ["decisions", cluster, "list", filters] as const,
    queryFn: ({ pageParam, signal }) => {
      const params = { query: { cluster, ...filters, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/decisions/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

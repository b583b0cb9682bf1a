/** The state of the scheduler itself. */
import { queryOptions } from "@tanstack/react-query";
import { endpoint, request } from "./client";
import type { Overview } from "./types";

export function overviewQuery(cluster: string) {
  return queryOptions({
    queryKey: ["overview", cluster] as const,
    queryFn: ({ signal }) => request<Overview>(endpoint("overview/", { cluster }), { signal }),
    refetchInterval: 5_000,
  });
}

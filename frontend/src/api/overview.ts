/** The state of the scheduler itself, and all clusters at a glance. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answer, api, everyRow } from "./client";
import { SEVERAL_RENEW_MS } from "./live/follow";
import type { ClusterOverview } from "./types";

export function overviewQuery(cluster: string) {
  const params = { query: { cluster } };
  return queryOptions({
    queryKey: ["overview", cluster] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/overview/", { params, signal })),
    refetchInterval: 5_000,
  });
}

/** A line for each of these clusters. */
export function clusterOverviewsQuery(clusters: string) {
  return queryOptions({
    queryKey: ["cluster-overviews", clusters] as const,
    queryFn: ({ signal }) =>
      everyRow<ClusterOverview>((page) =>
        answer(
          api.GET("/api/v1/cluster-overviews/", {
            params: { query: { cluster: clusters, ...page } },
            signal,
          }),
        ),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: SEVERAL_RENEW_MS,
  });
}

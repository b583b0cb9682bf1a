/** The state of the scheduler itself, and all clusters at a glance. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { after, answer, api } from "./client";
import { SEVERAL_RENEW_MS } from "./cluster";
import type { ClusterOverview, Page } from "./types";

export function overviewQuery(cluster: string) {
  const params = { query: { cluster } };
  return queryOptions({
    queryKey: ["overview", cluster] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/overview/", { params, signal })),
    refetchInterval: 5_000,
  });
}

const MAX_PAGE = 1000;

/** A line for each of these clusters. */
export function clusterOverviewsQuery(clusters: string) {
  return queryOptions({
    queryKey: ["cluster-overviews", clusters] as const,
    queryFn: async ({ signal }) => {
      const lines: ClusterOverview[] = [];
      let cursor: string | null = null;
      do {
        const params = { query: { cluster: clusters, ...after(cursor), limit: MAX_PAGE } };
        const page: Page<ClusterOverview> = await answer(
          api.GET("/api/v1/cluster-overviews/", { params, signal }),
        );
        lines.push(...page.results);
        cursor = page.next;
      } while (cursor !== null);
      return lines;
    },
    placeholderData: keepPreviousData,
    refetchInterval: SEVERAL_RENEW_MS,
  });
}

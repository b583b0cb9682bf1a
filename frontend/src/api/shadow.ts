/** Mode shadow: our decisions beside those of the scheduler that runs the cluster. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { after, answer, api } from "./client";

const PAGE_SIZE = 100;
const RENEW_MS = 15_000;

/** How far both agreed in the last hours. */
export function shadowQuery(cluster: string, hours: number) {
  const params = { query: { cluster, hours } };
  return queryOptions({
    queryKey: ["shadow", cluster, "agreement", hours] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/shadow/", { params, signal })),
    refetchInterval: RENEW_MS,
  });
}

/** The differences, the newest first. */
export function shadowDifferencesQuery(cluster: string) {
  return infiniteQueryOptions({
    queryKey: ["shadow", cluster, "differences"] as const,
    queryFn: ({ pageParam, signal }) => {
      const params = { query: { cluster, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/shadow/differences/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

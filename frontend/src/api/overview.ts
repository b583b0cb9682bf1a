/** The state of the scheduler itself. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";

export function overviewQuery(cluster: string) {
  const params = { query: { cluster } };
  return queryOptions({
    queryKey: ["overview", cluster] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/overview/", { params, signal })),
    refetchInterval: 5_000,
  });
}

/** What an operator sets of a cluster, what does not agree with it, and what drivers publish in it. */
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { after, answer, api } from "./client";
import type { ClusterSettings } from "./types";

const RENEW_MS = 15_000;
const PAGE_SIZE = 100;

const keys = { all: (cluster: string) => ["cluster", cluster] as const };

export function clusterQuery(name: string) {
  return queryOptions({
    queryKey: [...keys.all(name), "settings"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/clusters/{name}/", { params: { path: { name } }, signal })),
  });
}

export function useClusterSettings(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: ClusterSettings) =>
      answer(api.PATCH("/api/v1/clusters/{name}/", { params: { path: { name } }, body })),
    onSettled: () => {
      // The mode is part of the session, and of what every page may do.
      void queries.invalidateQueries({ queryKey: keys.all(name) });
      return queries.invalidateQueries({ queryKey: ["session"] });
    },
  });
}

/** Kueue's objects in the cluster that are not as ours. */
export function servedProblemsQuery(cluster: string) {
  return infiniteQueryOptions({
    queryKey: [...keys.all(cluster), "problems"] as const,
    queryFn: ({ pageParam, signal }) => {
      const params = { query: { cluster, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/served-objects/problems/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: RENEW_MS,
  });
}

/** The devices that drivers publish on a node for claims. */
export function publishedDevicesQuery(cluster: string, node: string) {
  const params = { query: { cluster, node } };
  return queryOptions({
    queryKey: [...keys.all(cluster), "published", node] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/published-devices/", { params, signal })),
    refetchInterval: RENEW_MS,
  });
}

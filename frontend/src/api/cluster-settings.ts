/** Settings of a cluster, their disagreements with it, and the devices that drivers publish in it. */
import { t } from "@lingui/core/macro";
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { ApiError, after, answer, api } from "./client";
import type { ClusterSettings } from "./types";

const RENEW_MS = 15_000;
const PAGE_SIZE = 100;

const keys = { all: (cluster: string) => ["cluster", cluster] as const };

export function clusterQuery(name: string) {
  return queryOptions({
    queryKey: [...keys.all(name), "settings"] as const,
    queryFn: async ({ signal }) => {
      const { data, response } = await api.GET("/api/v1/clusters/{name}/", {
        params: { path: { name } },
        signal,
      });
      // It was answered: a refusal is thrown before.
      return { ...(data as NonNullable<typeof data>), etag: response.headers.get("ETag") };
    },
  });
}

export function useClusterSettings(name: string) {
  const queries = useQueryClient();
  return useMutation({
    /** Set only while the settings are as they were read; else they are read again, and it says who was faster. */
    mutationFn: async ({ change: body, etag }: { change: ClusterSettings; etag: string | null }) => {
      const header = etag === null ? {} : { "If-Match": etag };
      try {
        await answer(api.PATCH("/api/v1/clusters/{name}/", { params: { path: { name }, header }, body }));
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 412) throw error;
        throw new Error(
          t`The settings of this cluster have changed since you opened them, and nothing was saved. The current values are shown: check them, then save again.`,
        );
      }
    },
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

/** How the scheduler, the push and the watcher are doing. */
export function diagnosticsQuery(cluster: string) {
  return queryOptions({
    queryKey: ["diagnostics", cluster] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/diagnostics/", { params: { query: { cluster } }, signal })),
    refetchInterval: 5_000,
  });
}

/** The cycles that decided something, the newest first. */
export function cyclesQuery(cluster: string) {
  return infiniteQueryOptions({
    queryKey: ["scheduling-cycles", cluster] as const,
    queryFn: ({ pageParam, signal }) => {
      const params = { query: { cluster, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/scheduling-cycles/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

/** ClusterQueues, LocalQueues and the names to choose from. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { ApiError, answer, api, everyRow } from "./client";
import { SEVERAL_RENEW_MS } from "./live/follow";
import type { ClusterQueue, Cohort, LocalQueue, Page } from "./types";

const MAX_NAMES = 1000;

const clusterQueueKeys = {
  all: (cluster: string) => ["cluster-queues", cluster] as const,
  detail: (cluster: string, name: string) => [...clusterQueueKeys.all(cluster), name] as const,
};

export function clusterQueueQuery(cluster: string, name: string) {
  const params = { path: { name }, query: { cluster } };
  return queryOptions({
    queryKey: clusterQueueKeys.detail(cluster, name),
    queryFn: async ({ signal }) =>
      (await answer(api.GET("/api/v1/cluster-queues/{name}/", { params, signal }))) as ClusterQueue,
  });
}

/** The amounts that users hold of the queue, by its limits by user and those of the cohorts above it. */
export function userLimitsQuery(cluster: string, name: string) {
  const params = { path: { name }, query: { cluster } };
  return queryOptions({
    queryKey: [...clusterQueueKeys.detail(cluster, name), "user-limits"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/cluster-queues/{name}/user-limits/", { params, signal })),
  });
}

/** The ClusterQueues of several clusters, which no live stream tells of. */
export function clusterQueuesQuery(clusters: string) {
  return queryOptions({
    queryKey: [...clusterQueueKeys.all(clusters), "list"] as const,
    queryFn: ({ signal }) =>
      everyRow<ClusterQueue>(
        async (page) =>
          (await answer(
            api.GET("/api/v1/cluster-queues/", { params: { query: { cluster: clusters, ...page } }, signal }),
          )) as Page<ClusterQueue>,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: SEVERAL_RENEW_MS,
  });
}

/** Null for a cohort that queues name and that is not declared: Kueue creates it in the same way. */
export function cohortQuery(cluster: string, name: string) {
  const params = { path: { name }, query: { cluster } };
  return queryOptions({
    queryKey: ["cohorts", cluster, name] as const,
    queryFn: async ({ signal }): Promise<Cohort | null> => {
      try {
        return (await answer(api.GET("/api/v1/cohorts/{name}/", { params, signal }))) as Cohort;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });
}

export function localQueueQuery(cluster: string, namespace: string, name: string) {
  const params = { path: { namespace, name }, query: { cluster } };
  return queryOptions({
    queryKey: ["local-queues", cluster, "detail", namespace, name] as const,
    queryFn: async ({ signal }) =>
      (await answer(api.GET("/api/v1/local-queues/{namespace}/{name}/", { params, signal }))) as LocalQueue,
    refetchInterval: 10_000,
  });
}

/** The LocalQueues that lead into a ClusterQueue, or all of them. */
export function localQueuesQuery(cluster: string, clusterQueue?: string) {
  const filter = clusterQueue === undefined ? {} : { cluster_queue: clusterQueue };
  const params = { query: { cluster, ...filter, limit: MAX_NAMES } };
  return queryOptions({
    queryKey: ["local-queues", cluster, clusterQueue ?? null] as const,
    queryFn: async ({ signal }) =>
      (await answer(api.GET("/api/v1/local-queues/", { params, signal }))) as Page<LocalQueue>,
    refetchInterval: 10_000,
  });
}

/** The amounts that the user may still use in a LocalQueue. */
export function headroomQuery(cluster: string, { namespace, name }: { namespace: string; name: string }) {
  const params = { path: { namespace, name }, query: { cluster } };
  return queryOptions({
    queryKey: ["local-queues", cluster, "headroom", namespace, name] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/local-queues/{namespace}/{name}/headroom/", { params, signal })),
    refetchInterval: 10_000,
  });
}

/** Names to choose from in filters and forms. */
export function namesQuery(
  cluster: string,
  kind: "namespaces" | "cluster-queues" | "cohorts" | "resource-flavors" | "workload-priority-classes",
) {
  const params = { query: { cluster, limit: MAX_NAMES } };
  return queryOptions({
    queryKey: ["names", cluster, kind] as const,
    queryFn: ({ signal }) =>
      answer<{ results: { name: string }[] }>(api.GET(`/api/v1/${kind}/`, { params, signal })),
    // Of several clusters a name may come more than once.
    select: (page) => [...new Set(page.results.map((row) => row.name))].sort(),
    staleTime: 60_000,
  });
}

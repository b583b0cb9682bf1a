/** ClusterQueues, LocalQueues and priority classes. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { endpoint, path, request } from "./client";
import type { ClusterQueue, LocalQueue, Page, ResourceGroup } from "./types";

export const clusterQueueKeys = {
  all: (cluster: string) => ["cluster-queues", cluster] as const,
  detail: (cluster: string, name: string) => [...clusterQueueKeys.all(cluster), name] as const,
};

export function clusterQueueQuery(cluster: string, name: string) {
  return queryOptions({
    queryKey: clusterQueueKeys.detail(cluster, name),
    queryFn: ({ signal }) =>
      request<ClusterQueue>(endpoint(path("cluster-queues", name), { cluster }), { signal }),
  });
}

export function localQueuesQuery(cluster: string, clusterQueue?: string) {
  return queryOptions({
    queryKey: ["local-queues", cluster, clusterQueue ?? null] as const,
    queryFn: ({ signal }) =>
      request<Page<LocalQueue>>(
        endpoint("local-queues/", { cluster, cluster_queue: clusterQueue, limit: 500 }),
        {
          signal,
        },
      ),
  });
}

export interface Named {
  name: string;
}

/** Names to choose from in filters and forms. */
export function namesQuery(
  cluster: string,
  kind: "namespaces" | "cluster-queues" | "workload-priority-classes",
) {
  return queryOptions({
    queryKey: ["names", cluster, kind] as const,
    queryFn: ({ signal }) => request<Page<Named>>(endpoint(`${kind}/`, { cluster, limit: 1000 }), { signal }),
    select: (page) => page.results.map((row) => row.name).sort(),
    staleTime: 60_000,
  });
}

export interface QuotaChange {
  resource_groups?: ResourceGroup[];
  stop_policy?: ClusterQueue["stop_policy"];
  fair_weight?: string | null;
}

/** Changes quotas; the scheduler follows with its next cycle. */
export function useEditClusterQueue(cluster: string, name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (change: QuotaChange) =>
      request<ClusterQueue>(endpoint(path("cluster-queues", name), { cluster }), {
        method: "PATCH",
        json: change,
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: clusterQueueKeys.all(cluster) }),
  });
}

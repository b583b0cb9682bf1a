/** Workloads: keys, queries and what can be done to one. */
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import type { WorkloadFilters } from "@/lib/workload-filters";
import { endpoint, path, request, requestText } from "./client";
import type { Page, Workload, WorkloadDetail, WorkloadEvent } from "./types";

export interface WorkloadReference {
  namespace: string;
  name: string;
}

const PAGE_SIZE = 100;

export const workloadKeys = {
  all: (cluster: string) => ["workloads", cluster] as const,
  list: (cluster: string, filters: WorkloadFilters) =>
    [...workloadKeys.all(cluster), "list", filters] as const,
  pending: (cluster: string, queue: string) => [...workloadKeys.all(cluster), "pending", queue] as const,
  detail: (cluster: string, { namespace, name }: WorkloadReference) =>
    [...workloadKeys.all(cluster), "detail", namespace, name] as const,
};

export function workloadsQuery(cluster: string, filters: WorkloadFilters) {
  return infiniteQueryOptions({
    queryKey: workloadKeys.list(cluster, filters),
    queryFn: ({ pageParam, signal }) =>
      request<Page<Workload>>(
        endpoint("workloads/", { cluster, ...filters, after: pageParam, limit: PAGE_SIZE }),
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

/** Who waits in a ClusterQueue, in the order in which it serves them. */
export function pendingInQueueQuery(cluster: string, queue: string) {
  return infiniteQueryOptions({
    queryKey: workloadKeys.pending(cluster, queue),
    queryFn: ({ pageParam, signal }) =>
      request<Page<Workload>>(
        endpoint("workloads/", {
          cluster,
          cluster_queue: queue,
          status: "Pending",
          ordering: "position",
          after: pageParam,
          limit: PAGE_SIZE,
        }),
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

export function workloadQuery(cluster: string, reference: WorkloadReference) {
  return queryOptions({
    queryKey: workloadKeys.detail(cluster, reference),
    queryFn: ({ signal }) =>
      request<WorkloadDetail>(endpoint(path("workloads", reference.namespace, reference.name), { cluster }), {
        signal,
      }),
  });
}

export function workloadEventsQuery(cluster: string, reference: WorkloadReference) {
  return queryOptions({
    queryKey: [...workloadKeys.detail(cluster, reference), "events"] as const,
    queryFn: ({ signal }) =>
      request<Page<WorkloadEvent>>(
        endpoint(path("workloads", reference.namespace, reference.name, "events"), { cluster, limit: 200 }),
        { signal },
      ),
  });
}

export function workloadManifestQuery(cluster: string, reference: WorkloadReference) {
  return queryOptions({
    queryKey: [...workloadKeys.detail(cluster, reference), "manifest"] as const,
    queryFn: ({ signal }) =>
      requestText(endpoint(path("manifests", "workload", reference.namespace, reference.name), { cluster }), {
        signal,
      }),
  });
}

export type WorkloadAction =
  | { kind: "cancel" }
  | { kind: "hold" }
  | { kind: "release" }
  | { kind: "priority"; priority_class: string };

/** One action on one workload; what it changed is read again before the mutation settles. */
export function useWorkloadAction(cluster: string, reference: WorkloadReference) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ kind, ...body }: WorkloadAction) =>
      request<unknown>(endpoint(path("workloads", reference.namespace, reference.name, kind), { cluster }), {
        method: "POST",
        json: body,
      }),
    onSettled: () => queries.invalidateQueries({ queryKey: workloadKeys.all(cluster) }),
  });
}

export type BulkAction = "cancel" | "hold" | "release";

/** One action on many workloads; the answer names those that it changed. */
export function useBulkAction(cluster: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ action, workloads }: { action: BulkAction; workloads: WorkloadReference[] }) =>
      request<{ changed: WorkloadReference[] }>(endpoint(path("workloads", action), { cluster }), {
        method: "POST",
        json: { workloads: workloads.map(({ namespace, name }) => ({ namespace, name })) },
      }),
    onSettled: () => queries.invalidateQueries({ queryKey: workloadKeys.all(cluster) }),
  });
}

export interface ManifestSubmission {
  manifest: string;
  dryRun: boolean;
}

export interface AppliedObject {
  kind: string;
  namespace?: string | null;
  name: string;
  /** What happened to it, or with a dry run: would. */
  action: string;
  warnings: string[];
}

export interface ApplyResult {
  objects: AppliedObject[];
}

/** Applies manifests; with dryRun nothing is stored and the server says what would be. */
export function useSubmitManifest(cluster: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ manifest, dryRun }: ManifestSubmission) =>
      request<ApplyResult>(endpoint("manifests/", { cluster, dry_run: dryRun || null }), {
        method: "POST",
        yaml: manifest,
      }),
    onSuccess: (_, { dryRun }) =>
      dryRun ? undefined : queries.invalidateQueries({ queryKey: workloadKeys.all(cluster) }),
  });
}

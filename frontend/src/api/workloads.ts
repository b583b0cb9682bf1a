/** Workloads: keys, queries and what can be done to them. */
import {
  type InfiniteData,
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { shownMoment, shownMs } from "@/lib/moment";
import { basePath } from "@/lib/url/base-path";
import { filterQuery, type WorkloadFilters, type WorkloadGroup } from "@/lib/url/workload-filters";
import { after, answer, api } from "./client";
import type { paths } from "./schema.gen";
import type { Page, Workload } from "./types";

export interface WorkloadReference {
  namespace: string;
  name: string;
}

const PAGE_SIZE = 100;
const MAX_EVENTS = 200;
const RECENT_HOURS = 0.1;

export const workloadKeys = {
  all: (cluster: string) => ["workloads", cluster] as const,
  list: (cluster: string, filters: WorkloadFilters) =>
    [...workloadKeys.all(cluster), "list", filters] as const,
  queue: (cluster: string, queue: string, part: "pending" | "admitted") =>
    [...workloadKeys.all(cluster), part, queue] as const,
  detail: (cluster: string, { namespace, name }: WorkloadReference) =>
    [...workloadKeys.all(cluster), "detail", namespace, name] as const,
};

type WorkloadListQuery = NonNullable<paths["/api/v1/workloads/"]["get"]["parameters"]["query"]>;
type WorkloadOrdering = NonNullable<WorkloadListQuery["ordering"]>;
export const NEWEST_FIRST: WorkloadOrdering = "-id";

/** All that match, in the order of a column: the newest first without one. */
export function workloadsQuery(
  cluster: string,
  filters: WorkloadFilters,
  sort: string = NEWEST_FIRST,
  annotations: readonly string[] = [],
) {
  return infiniteQueryOptions({
    queryKey: [...workloadKeys.list(cluster, filters), sort, annotations] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...listQuery(cluster, filters, sort, annotations), ...after(pageParam) };
      return answer(api.GET("/api/v1/workloads/", { params: { query }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

function listQuery(cluster: string, filters: WorkloadFilters, sort: string, annotations: readonly string[]) {
  const asked = annotations.length === 0 ? {} : { annotations: annotations.join(",") };
  const ordering = sort as WorkloadOrdering;
  return { cluster, ordering, limit: PAGE_SIZE, ...asked, ...filterQuery(filters, shownMs()) };
}

/** The pages of a list as they are kept. */
export type WorkloadPages = InfiniteData<Page<Workload>, string | null>;

/** The present rows of `names` (namespace/name) in a list that is kept. */
export async function readNamed(key: readonly unknown[], names: readonly string[]): Promise<Workload[]> {
  const [, cluster, , filters, sort, annotations] = key as ReturnType<typeof workloadsQuery>["queryKey"];
  const query = { ...listQuery(cluster, filters, sort, annotations), names: names.join(",") };
  return (await answer(api.GET("/api/v1/workloads/", { params: { query } }))).results;
}

/** How many match the filters, by one of them: all of them, not only those that are loaded. */
export function workloadCountsQuery(cluster: string, by: WorkloadGroup, filters: WorkloadFilters) {
  return queryOptions({
    queryKey: [...workloadKeys.all(cluster), "counts", by, filters] as const,
    queryFn: ({ signal }) => {
      const query = { cluster, by, ...filterQuery(filters, shownMs()) };
      return answer(api.GET("/api/v1/workloads/counts/", { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
  });
}

/** The workloads that wait in a ClusterQueue, in the order in which it serves them. */
export function pendingInQueueQuery(cluster: string, queue: string) {
  return queueQuery(cluster, queue, "pending", { ordering: "position" });
}

/** The workloads with quota of a ClusterQueue, the newest first. */
export function admittedInQueueQuery(cluster: string, queue: string) {
  return queueQuery(cluster, queue, "admitted", {
    ordering: NEWEST_FIRST,
    status: ["QuotaReserved", "Admitted"],
  });
}

function queueQuery(
  cluster: string,
  queue: string,
  part: "pending" | "admitted",
  asked: Pick<WorkloadListQuery, "ordering" | "status">,
) {
  return infiniteQueryOptions({
    queryKey: workloadKeys.queue(cluster, queue, part),
    queryFn: ({ pageParam, signal }) => {
      const query = { cluster, cluster_queue: queue, ...asked, ...after(pageParam), limit: PAGE_SIZE };
      return answer(api.GET("/api/v1/workloads/", { params: { query }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

export function workloadQuery(cluster: string, { namespace, name }: WorkloadReference) {
  const params = { path: { namespace, name }, query: { cluster } };
  return queryOptions({
    queryKey: workloadKeys.detail(cluster, { namespace, name }),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/workloads/{namespace}/{name}/", { params, signal })),
  });
}

/** Why it waits, as data. */
export function explanationQuery(cluster: string, { namespace, name }: WorkloadReference) {
  const params = { path: { namespace, name }, query: { cluster } };
  return queryOptions({
    queryKey: [...workloadKeys.detail(cluster, { namespace, name }), "explanation"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/workloads/{namespace}/{name}/explanation/", { params, signal })),
    // Another workload that ends or arrives changes it too, but not in the past.
    refetchInterval: shownMoment() === null ? 10_000 : false,
  });
}

export function workloadEventsQuery(cluster: string, { namespace, name }: WorkloadReference) {
  const params = { path: { namespace, name }, query: { cluster, limit: MAX_EVENTS } };
  return queryOptions({
    queryKey: [...workloadKeys.detail(cluster, { namespace, name }), "events"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/workloads/{namespace}/{name}/events/", { params, signal })),
  });
}

/** The use of its containers in the last minutes, as their monitors report it; empty without a monitor. */
export function workloadSamplesQuery(cluster: string, { namespace, name }: WorkloadReference) {
  const params = { path: { namespace, name }, query: { cluster, hours: RECENT_HOURS } };
  return queryOptions({
    queryKey: [...workloadKeys.detail(cluster, { namespace, name }), "samples"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/workloads/{namespace}/{name}/samples/", { params, signal })),
    refetchInterval: 30_000,
  });
}

/** Its pods as the cluster shows them; of many the first. */
export function workloadPodsQuery(cluster: string, { namespace, name }: WorkloadReference) {
  const params = { path: { namespace, name }, query: { cluster, limit: 200 } };
  return queryOptions({
    queryKey: [...workloadKeys.detail(cluster, { namespace, name }), "pods"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/workloads/{namespace}/{name}/pods/", { params, signal })),
    refetchInterval: 10_000,
  });
}

/** The address of a pod's log, followed from its last lines on. */
export function podLogUrl(
  cluster: string,
  { namespace, name }: WorkloadReference,
  pod: string,
  container: string,
  previous: boolean,
): string {
  const path = [namespace, name, "pods", pod, "log"].map(encodeURIComponent).join("/");
  const query = new URLSearchParams({ cluster, container, follow: "true", tail: "2000" });
  if (previous) query.set("previous", "true");
  return `${window.location.origin}${basePath}/api/v1/workloads/${path}/?${query}`;
}

export type WorkloadAction =
  | { kind: "cancel" | "hold" | "release" | "requeue" }
  | { kind: "priority"; priority_class: string };

/** One action on one workload; what it changed is read again before the mutation settles. */
export function useWorkloadAction(cluster: string, { namespace, name }: WorkloadReference) {
  const queries = useQueryClient();
  const params = { path: { namespace, name }, query: { cluster } };
  return useMutation({
    mutationFn: (action: WorkloadAction) => {
      if (action.kind === "priority") {
        const body = { priority_class: action.priority_class };
        return answer(api.POST("/api/v1/workloads/{namespace}/{name}/priority/", { params, body }));
      }
      return answer(api.POST(`/api/v1/workloads/{namespace}/{name}/${action.kind}/`, { params }));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: workloadKeys.all(cluster) }),
  });
}

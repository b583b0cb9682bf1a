/** The decision log: it outlives the workloads that it tells of. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { DecisionFilters } from "@/lib/url/decision-filters";
import { type TimeRange, withBounds } from "@/lib/url/time-range";
import { after, answer, api } from "./client";

const PAGE_SIZE = 100;

/** The newest few. */
export function latestDecisionsQuery(cluster: string, limit: number) {
  const params = { query: { cluster, limit } };
  return queryOptions({
    queryKey: ["decisions", cluster, "latest", limit] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/decisions/", { params, signal })),
    refetchInterval: 5_000,
  });
}

/** The last placement of a workload, from the log, which outlives the workload. Null without one. */
export interface PastPlacement {
  at: string;
  uid: string;
  clusterQueue: string;
  devices: { node: string; uuid: string; memoryMib: number; coresPercent: number }[];
}

export function lastPlacementQuery(
  cluster: string,
  { namespace, name }: { namespace: string; name: string },
) {
  const params = { query: { cluster, namespace, workload: name, action: "Admit", limit: 1 } };
  return queryOptions({
    queryKey: ["decisions", cluster, "placement", namespace, name] as const,
    queryFn: async ({ signal }): Promise<PastPlacement | null> => {
      const [found] = (await answer(api.GET("/api/v1/decisions/", { params, signal }))).results;
      if (found === undefined) return null;
      const devices = (found.detail.devices ?? []) as [string, string, number, number][];
      return {
        at: found.decided_at,
        uid: found.workload_uid,
        clusterQueue: found.cluster_queue,
        devices: devices.map(([node, uuid, memoryMib, coresPercent]) => ({
          node,
          uuid,
          memoryMib,
          coresPercent,
        })),
      };
    },
  });
}

/** The decisions on one workload, the newest first. */
export function workloadDecisionsQuery(
  cluster: string,
  { namespace, name }: { namespace: string; name: string },
) {
  const params = { query: { cluster, namespace, workload: name, limit: 100 } };
  return queryOptions({
    queryKey: ["decisions", cluster, "workload", namespace, name] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/decisions/", { params, signal })),
  });
}

/** The number of decisions of an action that charts mark. */
const MAX_MARKED = 200;

/** The newest decisions of one action in a range of time, for the marks of charts. */
export function markedDecisionsQuery(
  cluster: string,
  action: "Preempt" | "Evict",
  range: TimeRange,
  clusterQueue?: string,
) {
  return queryOptions({
    queryKey: ["decisions", cluster, "marked", action, range, clusterQueue ?? ""] as const,
    queryFn: ({ signal }) => {
      const filter = clusterQueue === undefined ? {} : { cluster_queue: clusterQueue };
      const query = { cluster, action, ...filter, ...withBounds(range, Date.now()), limit: MAX_MARKED };
      return answer(api.GET("/api/v1/decisions/", { params: { query }, signal }));
    },
    refetchInterval: range.until === undefined ? 15_000 : false,
  });
}

/** All of them, the newest first. */
export function decisionsQuery(cluster: string, filters: DecisionFilters) {
  return infiniteQueryOptions({
    queryKey: ["decisions", cluster, "list", filters] as const,
    queryFn: ({ pageParam, signal }) => {
      const found = withBounds(filters, Date.now());
      const params = { query: { cluster, ...found, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/decisions/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

/** Nodes: whether each can take pods, what is asked of it and who runs there. What its devices hold comes by the live stream. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { after, answer, api, everyRow } from "./client";
import type { Node } from "./types";

const PODS_PAGE = 100;
const RENEW_MS = 15_000;

const nodeKeys = {
  all: (cluster: string) => ["nodes", cluster] as const,
  detail: (cluster: string, name: string) => [...nodeKeys.all(cluster), "detail", name] as const,
};

/** All nodes, page by page. */
export function nodesQuery(cluster: string) {
  return queryOptions({
    queryKey: [...nodeKeys.all(cluster), "list"] as const,
    queryFn: ({ signal }) =>
      everyRow<Node>((page) =>
        answer(api.GET("/api/v1/nodes/", { params: { query: { cluster, ...page } }, signal })),
      ),
    refetchInterval: RENEW_MS,
  });
}

export function nodeQuery(cluster: string, name: string) {
  const params = { path: { name }, query: { cluster } };
  return queryOptions({
    queryKey: nodeKeys.detail(cluster, name),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/nodes/{name}/", { params, signal })),
    refetchInterval: RENEW_MS,
  });
}

/** The pods of workloads that are there now, as far as the reader may see them. */
export function nodePodsQuery(cluster: string, name: string) {
  return infiniteQueryOptions({
    queryKey: [...nodeKeys.detail(cluster, name), "pods"] as const,
    queryFn: ({ pageParam, signal }) => {
      const params = { path: { name }, query: { cluster, ...after(pageParam), limit: PODS_PAGE } };
      return answer(api.GET("/api/v1/nodes/{name}/pods/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: RENEW_MS,
  });
}

/** ResourceFlavors with what their nodes have, and topologies. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Page, ResourceFlavor, Topology } from "./types";

const MAX_FLAVORS = 1000;
const RENEW_MS = 30_000;

export function flavorsQuery(cluster: string) {
  const params = { query: { cluster, limit: MAX_FLAVORS } };
  return queryOptions({
    queryKey: ["flavors", cluster, "list"] as const,
    queryFn: async ({ signal }) =>
      ((await answer(api.GET("/api/v1/resource-flavors/", { params, signal }))) as Page<ResourceFlavor>)
        .results,
    refetchInterval: RENEW_MS,
  });
}

export function flavorQuery(cluster: string, name: string) {
  const params = { path: { name }, query: { cluster } };
  return queryOptions({
    queryKey: ["flavors", cluster, "detail", name] as const,
    queryFn: async ({ signal }) =>
      (await answer(api.GET("/api/v1/resource-flavors/{name}/", { params, signal }))) as ResourceFlavor,
    refetchInterval: RENEW_MS,
  });
}

export function topologiesQuery(cluster: string) {
  const params = { query: { cluster, limit: MAX_FLAVORS } };
  return queryOptions({
    queryKey: ["topologies", cluster] as const,
    queryFn: async ({ signal }) =>
      ((await answer(api.GET("/api/v1/topologies/", { params, signal }))) as Page<Topology>).results,
    refetchInterval: RENEW_MS,
  });
}

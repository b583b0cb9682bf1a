/** Computed and measured figures of devices; the amounts that they hold come by the live stream. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answer, api, everyRow } from "./client";
import { SEVERAL_RENEW_MS } from "./live/follow";
import type { Device } from "./types";
import type { WorkloadReference } from "./workloads";

/** The devices of several clusters, which no live stream tells of. */
export function devicesQuery(clusters: string) {
  return queryOptions({
    queryKey: ["devices", clusters] as const,
    queryFn: ({ signal }) =>
      everyRow<Device>((page) =>
        answer(api.GET("/api/v1/devices/", { params: { query: { cluster: clusters, ...page } }, signal })),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: SEVERAL_RENEW_MS,
  });
}

/** Idle devices, and the part of them that no workload could use. */
export function fragmentationQuery(cluster: string) {
  return queryOptions({
    queryKey: ["fragmentation", cluster] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/fragmentation/", { params: { query: { cluster } }, signal })),
    refetchInterval: 10_000,
  });
}

/** Differences between the cluster's devices and the decisions. */
export function driftQuery(cluster: string) {
  return queryOptions({
    queryKey: ["drift", cluster] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/drift/", { params: { query: { cluster } }, signal })),
    refetchInterval: 15_000,
  });
}

/** The present use of the devices, as their monitors report it; a device without a report is left out. */
export function deviceUsageQuery(cluster: string) {
  return queryOptions({
    queryKey: ["device-usage", cluster] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/device-usage/", { params: { query: { cluster } }, signal })),
    refetchInterval: 30_000,
  });
}

/** Facts that do not change while they are on screen: the mode and the NUMA node. */
export function deviceQuery(cluster: string, uuid: string) {
  const params = { path: { uuid }, query: { cluster } };
  return queryOptions({
    queryKey: ["device", cluster, uuid] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/devices/{uuid}/", { params, signal })),
    staleTime: 60_000,
  });
}

/** The lengths of the measured past: hours, and the steps in which they are told. */
export const USE_RANGES = {
  "1h": { hours: 1, resolution: "raw", stepSeconds: 15 },
  "24h": { hours: 24, resolution: "5m", stepSeconds: 300 },
  "14d": { hours: 14 * 24, resolution: "1h", stepSeconds: 3_600 },
} as const;
export type UseRange = keyof typeof USE_RANGES;

/** The use of a device, as its monitor reports it; empty without a monitor. */
export function deviceSamplesQuery(cluster: string, uuid: string, range: UseRange = "1h") {
  const { hours, resolution } = USE_RANGES[range];
  const params = { path: { uuid }, query: { cluster, hours, resolution } };
  return queryOptions({
    queryKey: ["device-samples", cluster, uuid, range] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/devices/{uuid}/samples/", { params, signal })),
    refetchInterval: 30_000,
  });
}

/** The fewest moves of running pods that would give a waiting workload its devices: advice, nothing is done. */
export function movesQuery(cluster: string, { namespace, name }: WorkloadReference) {
  const params = { path: { namespace, name }, query: { cluster } };
  return queryOptions({
    queryKey: ["moves", cluster, namespace, name] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/workloads/{namespace}/{name}/moves/", { params, signal })),
  });
}

/** Manifests: YAML in and out, which the typed client does not speak. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { basePath } from "@/lib/url/base-path";
import { send } from "./client";
import type { ApplyResult, Preview } from "./types";
import { type WorkloadReference, workloadKeys } from "./workloads";

function address(path: string, query: Record<string, string>): string {
  return `${window.location.origin}${basePath}/api/v1/manifests/${path}?${new URLSearchParams(query)}`;
}

/** The workload as Kueue's YAML. */
export function workloadManifestQuery(cluster: string, { namespace, name }: WorkloadReference) {
  const path = `workload/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/`;
  return queryOptions({
    queryKey: [...workloadKeys.detail(cluster, { namespace, name }), "manifest"] as const,
    queryFn: async ({ signal }) => (await send(new Request(address(path, { cluster }), { signal }))).text(),
  });
}

/** What a submission would come to now; nothing is stored. */
export function usePreview(cluster: string) {
  return useMutation({
    mutationFn: async (manifest: string): Promise<Preview> => {
      const request = new Request(
        `${window.location.origin}${basePath}/api/v1/preview/?${new URLSearchParams({ cluster })}`,
        { method: "POST", headers: { "Content-Type": "application/yaml" }, body: manifest },
      );
      return (await send(request)).json() as Promise<Preview>;
    },
  });
}

/** Applies manifests, all or none; with dryRun nothing is stored and the server says what would be. */
export function useApplyManifests(cluster: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ manifest, dryRun }: { manifest: string; dryRun: boolean }): Promise<ApplyResult> => {
      const request = new Request(address("", { cluster, ...(dryRun ? { dry_run: "true" } : {}) }), {
        method: "POST",
        headers: { "Content-Type": "application/yaml" },
        body: manifest,
      });
      return (await send(request)).json() as Promise<ApplyResult>;
    },
    onSuccess: (_, { dryRun }) =>
      dryRun ? undefined : queries.invalidateQueries({ queryKey: workloadKeys.all(cluster) }),
  });
}

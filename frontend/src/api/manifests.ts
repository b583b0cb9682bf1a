/** Manifests: applied, tried and previewed as they are written; and single objects, edited while they are as they were read. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { authored, type Manifest } from "@/lib/manifest/object";
import { basePath } from "@/lib/url/base-path";
import { ApiError, send } from "./client";
import type { ApplyResult, Preview } from "./types";
import { workloadKeys } from "./workloads";

function address(path: string, query: Record<string, string>): string {
  return `${window.location.origin}${basePath}/api/v1/${path}?${new URLSearchParams(query)}`;
}

const manifestAddress = (path: string, query: Record<string, string>) => address(`manifests/${path}`, query);

const previewAddress = (query: Record<string, string>) => address("preview/", query);

/** The result that a submission would have now; nothing is stored. */
export function usePreview(cluster: string) {
  return useMutation({ mutationFn: (manifest: string) => previewManifest(cluster, manifest) });
}

/** The result that a submission would have now; nothing is stored. Rejects with an ApiError if it would be refused. */
export async function previewManifest(cluster: string, manifest: string): Promise<Preview> {
  const headers = { "Content-Type": "application/yaml" };
  const request = new Request(previewAddress({ cluster }), { method: "POST", headers, body: manifest });
  return (await send(request)).json() as Promise<Preview>;
}

/** Applies manifests, all or none; with dryRun nothing is stored and the server says what would be. */
export function useApplyManifests(cluster: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ manifest, dryRun }: { manifest: string; dryRun: boolean }): Promise<ApplyResult> => {
      const request = new Request(manifestAddress("", { cluster, ...(dryRun ? { dry_run: "true" } : {}) }), {
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

export type ObjectKind =
  | "ClusterQueue"
  | "Cohort"
  | "ConfigMap"
  | "Configuration"
  | "LocalQueue"
  | "Reservation"
  | "ResourceFlavor";

export interface ObjectReference {
  kind: string;
  /** Empty for kinds that have none. */
  namespace?: string;
  name: string;
}

export type DeletableReference = ObjectReference & { kind: ObjectKind };

/** An object in an editor. `version` is its version when it was read; null for a new one. */
export interface EditedObject {
  manifest: Manifest;
  version: string | null;
}

/** Another user changed the object meanwhile: its present state, and the server's sentence, which names the user. */
export class ChangedMeanwhile extends Error {
  constructor(
    message: string,
    readonly now: EditedObject,
  ) {
    super(message);
  }
}

function pathOf({ kind, namespace = "", name }: ObjectReference): string {
  return `${[kind.toLowerCase(), namespace, name].filter(Boolean).map(encodeURIComponent).join("/")}/`;
}

const key = (cluster: string, reference: ObjectReference) => ["objects", cluster, pathOf(reference)] as const;

/** The YAML of `kubectl get -o yaml`, status included. */
export function yamlQuery(cluster: string, reference: ObjectReference) {
  const address = manifestAddress(pathOf(reference), { cluster, format: "yaml" });
  return queryOptions({
    queryKey: [...key(cluster, reference), "yaml"] as const,
    queryFn: async ({ signal }) => (await send(new Request(address, { signal }))).text(),
    staleTime: 0,
  });
}

async function readObject(cluster: string, reference: ObjectReference): Promise<EditedObject> {
  const headers = { Accept: "application/json" };
  const answer = await send(new Request(manifestAddress(pathOf(reference), { cluster }), { headers }));
  const manifest = (await answer.json()) as Manifest;
  return { manifest: authored(manifest), version: String(manifest.metadata.resourceVersion) };
}

/** The part of an object that an author edits, read when the editor opens and not renewed while they type. */
export function objectQuery(cluster: string, reference: ObjectReference) {
  return queryOptions({
    queryKey: [...key(cluster, reference), "edited"] as const,
    queryFn: () => readObject(cluster, reference),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

async function post<Answer>(
  address: string,
  type: string,
  body: string,
  signal?: AbortSignal,
): Promise<Answer> {
  const request = { method: "POST", headers: { "Content-Type": type }, body, ...(signal ? { signal } : {}) };
  return (await send(new Request(address, request))).json() as Promise<Answer>;
}

const TRIED_AGAIN_MS = 500;

/** A large cluster is tried for longer than a request waits: ask again until its effects are whole. */
const untilTried = (query: { state: { data: Preview | undefined } }) =>
  query.state.data?.effects_pending ? TRIED_AGAIN_MS : false;

/** The objects that the server reads in a text, and the effects of storing them. */
export function effectsQuery(cluster: string, text: string) {
  return queryOptions({
    queryKey: ["effects", cluster, text] as const,
    queryFn: ({ signal }) =>
      post<Preview>(previewAddress({ cluster, effects: "true" }), "application/yaml", text, signal),
    placeholderData: keepPreviousData,
    refetchInterval: untilTried,
    retry: false,
    staleTime: 10_000,
    gcTime: 0,
  });
}

/** The effects of deleting an object. */
export function deletionQuery(cluster: string, { kind, namespace, name }: ObjectReference) {
  const body = JSON.stringify({ kind, metadata: { name, ...(namespace ? { namespace } : {}) } });
  return queryOptions({
    queryKey: ["effects", cluster, "delete", body] as const,
    queryFn: ({ signal }) =>
      post<Preview>(
        previewAddress({ cluster, effects: "true", delete: "true" }),
        "application/json",
        body,
        signal,
      ),
    refetchInterval: untilTried,
    retry: false,
    gcTime: 0,
  });
}

/** The queries that show configuration. */
const SHOWN = ["objects", "cluster", "cluster-queues", "cohorts", "local-queues", "flavors", "names"];

function useRenewal() {
  const queries = useQueryClient();
  return () =>
    queries.invalidateQueries({
      predicate: ({ queryKey }) => SHOWN.includes(String(queryKey[0])) && queryKey.at(-1) !== "edited",
    });
}

function referenceOf({ kind, metadata }: Manifest): ObjectReference {
  return { kind, namespace: String(metadata.namespace ?? ""), name: String(metadata.name ?? "") };
}

/** Applies an object; throws ChangedMeanwhile where it is no longer what was read. Answers with warnings. */
export function useSaveObject(cluster: string) {
  const renew = useRenewal();
  return useMutation({
    mutationFn: async ({ manifest, version }: EditedObject): Promise<string[]> => {
      // Of an object that is to be new no version is right: who has made it meanwhile keeps it.
      const metadata = { ...manifest.metadata, resourceVersion: version ?? "0" };
      const body = JSON.stringify({ ...manifest, metadata });
      try {
        const done = await post<ApplyResult>(manifestAddress("", { cluster }), "application/json", body);
        return done.warnings.map(({ message }) => message);
      } catch (error) {
        const isOld =
          error instanceof ApiError && error.errors.some(({ path }) => path.endsWith("resourceVersion"));
        if (!isOld) throw error;
        throw new ChangedMeanwhile(error.message, await readObject(cluster, referenceOf(manifest)));
      }
    },
    onSuccess: renew,
  });
}

/** The ConfigMaps of HAMi's device plugin. */
export function deviceSettingsQuery(cluster: string) {
  const address = manifestAddress("configmap/", { cluster, format: "json" });
  return queryOptions({
    queryKey: ["objects", cluster, "configmap/"] as const,
    queryFn: async ({ signal }) => {
      const list = (await (await send(new Request(address, { signal }))).json()) as { items: Manifest[] };
      return list.items;
    },
  });
}

const COLLECTIONS: Record<ObjectKind, string> = {
  ClusterQueue: "cluster-queues",
  Cohort: "cohorts",
  ConfigMap: "manifests/configmap",
  Configuration: "manifests/configuration",
  LocalQueue: "local-queues",
  Reservation: "reservations",
  ResourceFlavor: "resource-flavors",
};

/**
 * Deletes an object while it is still of the version that was read; a 412 otherwise. Answers whether it is gone: false
 * while something still holds it.
 */
export function useDeleteObject(cluster: string, { kind, namespace = "", name }: DeletableReference) {
  const renew = useRenewal();
  return useMutation({
    mutationFn: async (version: string) => {
      const path = [namespace, name].filter(Boolean).map(encodeURIComponent).join("/");
      const where = address(`${COLLECTIONS[kind]}/${path}/`, { cluster });
      const headers = { "If-Match": `"${version}"` };
      const answer = await send(new Request(where, { method: "DELETE", headers }));
      return answer.status === 204;
    },
    onSuccess: renew,
  });
}

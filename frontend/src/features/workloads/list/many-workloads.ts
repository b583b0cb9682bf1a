/** One action on as many workloads as a filter matches: their keys are collected page by page, and acted on in batches. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { ApiError, after, answer, api } from "@/api/client";
import type { Workload } from "@/api/types";
import { type WorkloadAction, type WorkloadReference, workloadKeys } from "@/api/workloads";
import { filterQuery, type WorkloadFilters } from "@/lib/url/workload-filters";

/** The number that the server returns at once. */
const PAGE_SIZE = 1000;
const BATCH_SIZE = 500;

export type Collected = Pick<Workload, "uid" | "namespace" | "name" | "status" | "pod_sets">;

export interface Collecting {
  signal: AbortSignal;
  onProgress: (collected: number) => void;
}

/** All workloads that match now, the newest first. What is submitted meanwhile is not among them. */
export async function collectWorkloads(
  cluster: string,
  filters: WorkloadFilters,
  { signal, onProgress }: Collecting,
): Promise<Collected[]> {
  // A range that ends now begins at one time for all pages.
  const asked = { cluster, ordering: "-id" as const, ...filterQuery(filters, Date.now()), limit: PAGE_SIZE };
  const found: Collected[] = [];
  let cursor: string | null = null;
  do {
    const query = { ...asked, ...after(cursor) };
    const page: { results: Workload[]; next: string | null } = await answer(
      api.GET("/api/v1/workloads/", { params: { query }, signal }),
    );
    found.push(
      ...page.results.map(({ uid, namespace, name, status, pod_sets }) => ({
        uid,
        namespace,
        name,
        status,
        pod_sets,
      })),
    );
    onProgress(found.length);
    cursor = page.next;
  } while (cursor !== null);
  return found;
}

/** A workload that an action did not change, and why. */
export interface Unchanged extends WorkloadReference {
  why: string;
}

export interface ManyResult {
  asked: number;
  changed: number;
  /** The action does not apply to them. */
  skipped: Unchanged[];
  /** The server refused. */
  failed: Unchanged[];
  /** The reader stopped before their turn. */
  untried: number;
}

interface Batches {
  signal: AbortSignal;
  onProgress: (tried: number) => void;
}

/** The action on all of them, batch after batch; a batch that is refused does not stop those after it. */
export async function actOnMany(
  cluster: string,
  action: WorkloadAction,
  workloads: readonly WorkloadReference[],
  { signal, onProgress }: Batches,
): Promise<ManyResult> {
  const result: ManyResult = { asked: workloads.length, changed: 0, skipped: [], failed: [], untried: 0 };
  for (let start = 0; start < workloads.length; start += BATCH_SIZE) {
    if (signal.aborted) {
      result.untried = workloads.length - start;
      break;
    }
    const batch = workloads
      .slice(start, start + BATCH_SIZE)
      .map(({ namespace, name }) => ({ namespace, name }));
    await actOnBatch(cluster, action, batch, result);
    onProgress(start + batch.length);
  }
  return result;
}

async function actOnBatch(
  cluster: string,
  action: WorkloadAction,
  batch: WorkloadReference[],
  result: ManyResult,
): Promise<void> {
  try {
    const { changed, skipped } = await post(cluster, action, batch);
    result.changed += changed.length;
    result.skipped.push(
      ...skipped.map(({ namespace, name, message }) => ({ namespace, name, why: message })),
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { failed, rest } = divide(batch, error);
    result.failed.push(...failed);
    for (const part of rest) await actOnBatch(cluster, action, part, result);
  }
}

/** Divides a refused batch into the workloads that the refusal names, and the others, which may be tried without them. */
export function divide(
  batch: WorkloadReference[],
  refusal: ApiError,
): { failed: Unchanged[]; rest: WorkloadReference[][] } {
  const whys = new Map(refusal.errors.map(({ value, rule }) => [String(value), rule]));
  const whyOf = ({ namespace, name }: WorkloadReference) => whys.get(`${namespace}/${name}`);
  const others = batch.filter((key) => whyOf(key) === undefined);
  if (others.length < batch.length) {
    const failed = batch.flatMap((key) => {
      const why = whyOf(key);
      return why === undefined ? [] : [{ ...key, why }];
    });
    return { failed, rest: others.length === 0 ? [] : [others] };
  }
  const namespaces = [...new Set(batch.map(({ namespace }) => namespace))];
  // Rights are those in a namespace: the reader may have them in another.
  if (refusal.status === 403 && namespaces.length > 1) {
    return {
      failed: [],
      rest: namespaces.map((name) => batch.filter(({ namespace }) => namespace === name)),
    };
  }
  return { failed: batch.map((key) => ({ ...key, why: refusal.message })), rest: [] };
}

function post(cluster: string, action: WorkloadAction, workloads: WorkloadReference[]) {
  const params = { query: { cluster } };
  if (action.kind === "priority") {
    const body = { workloads, priority_class: action.priority_class };
    return answer(api.POST("/api/v1/workloads/priority/", { params, body }));
  }
  return answer(api.POST(`/api/v1/workloads/${action.kind}/`, { params, body: { workloads } }));
}

/** One action on many workloads, how far it is, and a way to stop it between two batches. */
export function useBulkAction(cluster: string) {
  const queries = useQueryClient();
  const [tried, setTried] = useState(0);
  const stopper = useRef(new AbortController());
  const mutation = useMutation({
    mutationFn: ({ action, workloads }: { action: WorkloadAction; workloads: WorkloadReference[] }) => {
      stopper.current = new AbortController();
      setTried(0);
      const { signal } = stopper.current;
      return actOnMany(cluster, action, workloads, { signal, onProgress: setTried });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: workloadKeys.all(cluster) }),
  });
  return { mutation, tried, stop: () => stopper.current.abort() };
}

/** The selected workloads: rows of the list, or all that the filters matched when the reader asked for them. */
import { useMutation } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import type { WorkloadFilters } from "@/lib/url/workload-filters";
import { type Collected, collectWorkloads } from "./many-workloads";

interface Widened {
  /** The list that they were collected for. */
  view: string;
  workloads: Collected[];
  /** When they were collected. */
  atMs: number;
}

const NONE: ReadonlySet<string> = new Set();

/** The chosen workloads among the collected ones and those on screen; each once. */
export function selectedOf<Row extends Collected>(
  chosen: ReadonlySet<string>,
  collected: readonly Collected[],
  rows: readonly Row[],
): Collected[] {
  if (chosen.size === 0) return [];
  const known = new Map([...collected, ...rows].map((row) => [row.uid, row]));
  return [...known.values()].filter(({ uid }) => chosen.has(uid));
}

export function useSelection<Row extends Collected>(
  cluster: string,
  filters: WorkloadFilters,
  rows: readonly Row[],
) {
  const view = JSON.stringify([cluster, filters]);
  const [keys, setKeys] = useState(NONE);
  const [widened, setWidened] = useState<Widened | null>(null);
  const [collected, setCollected] = useState(0);
  const stopper = useRef(new AbortController());
  const widening = useMutation({
    mutationFn: async (): Promise<Widened> => {
      stopper.current = new AbortController();
      setCollected(0);
      const { signal } = stopper.current;
      const workloads = await collectWorkloads(cluster, filters, { signal, onProgress: setCollected });
      return { view, workloads, atMs: Date.now() };
    },
    onSuccess: (found) => {
      if (found.view !== view) return; // The reader has gone on to another list meanwhile.
      setWidened(found);
      setKeys(new Set(found.workloads.map(({ uid }) => uid)));
    },
  });
  // What left the list (another filter, another status) is no longer selected: an action is only for rows in sight.
  const valid = widened?.view === view ? widened : null;
  const chosen = valid === widened ? keys : NONE;
  const selected = useMemo(() => selectedOf(chosen, valid?.workloads ?? [], rows), [chosen, valid, rows]);
  return {
    chosen,
    choose: (next: ReadonlySet<string>) => {
      setKeys(next);
      setWidened(valid);
    },
    selected,
    /** When all that match were collected; null while the selection is of rows on screen. */
    widenedAtMs: valid?.atMs ?? null,
    widen: () => widening.mutate(),
    /** How many were collected so far; null while nothing is. */
    collected: widening.isPending ? collected : null,
    error: widening.error === null || widening.error.name === "AbortError" ? null : widening.error,
    clear: () => {
      stopper.current.abort();
      widening.reset();
      setKeys(NONE);
      setWidened(null);
    },
  };
}

export type Selection = Pick<
  ReturnType<typeof useSelection>,
  "selected" | "widenedAtMs" | "widen" | "collected" | "error" | "clear"
>;

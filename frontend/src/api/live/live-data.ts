/** How frames of the live stream change what we know: pure, so that it can be tested without a socket. */
import type { DeltaFrame, LiveData, LiveFrame } from "@/api/types";

export const EMPTY_LIVE_DATA: LiveData = {
  totals: {
    pending: 0,
    inadmissible: 0,
    reserving: 0,
    admitted: 0,
    nodes: 0,
    devices: 0,
    devices_in_use: 0,
    slots: 0,
    used_slots: 0,
    memory_mib: 0,
    used_memory_mib: 0,
    cores_percent: 0,
    used_cores_percent: 0,
  },
  cluster_queues: {},
  cohorts: {},
  devices: {},
};

/** All that wait: those that will be tried and those that were tried in vain. */
export function waiting(entry: { pending: number; inadmissible: number }): number {
  return entry.pending + entry.inadmissible;
}

/** The entries with those of the delta replaced and the removed ones gone; the same object when nothing changed. */
function merge<Entry>(
  known: Record<string, Entry>,
  changed: Record<string, Entry> | undefined,
  removed: string[] | undefined,
): Record<string, Entry> {
  const gone = removed?.filter((name) => name in known) ?? [];
  const anyChanged = changed !== undefined && Object.keys(changed).length > 0;
  if (!anyChanged && gone.length === 0) return known;
  const next = { ...known, ...changed };
  for (const name of gone) delete next[name];
  return next;
}

export function applyDelta(known: LiveData, delta: DeltaFrame["data"]): LiveData {
  const removed = delta.removed;
  return {
    totals: delta.totals ?? known.totals,
    cluster_queues: merge(known.cluster_queues, delta.cluster_queues, removed?.cluster_queues),
    cohorts: merge(known.cohorts, delta.cohorts, removed?.cohorts),
    devices: merge(known.devices, delta.devices, removed?.devices),
  };
}

/**
 * Whether a workload may have come, gone or changed its status. Where one takes the place of another the totals stay, and
 * only its queue or its devices tell of it.
 */
export function hasMoved(before: LiveData | null, after: LiveData): boolean {
  if (before === null) return true;
  const { pending, inadmissible, reserving, admitted } = after.totals;
  return (
    before.cluster_queues !== after.cluster_queues ||
    before.devices !== after.devices ||
    before.totals.pending !== pending ||
    before.totals.inadmissible !== inadmissible ||
    before.totals.reserving !== reserving ||
    before.totals.admitted !== admitted
  );
}

/** A frame as the server wrote it, or null for a text that is none. */
export function parseFrame(text: string): LiveFrame | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { type, epoch, sequence } = value as Record<string, unknown>;
  const known = type === "snapshot" || type === "delta" || type === "heartbeat";
  if (!known || typeof epoch !== "number" || typeof sequence !== "number") return null;
  return value as LiveFrame;
}

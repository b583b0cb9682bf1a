/** The LocalQueue that a submission goes to: the one used last, or the one where it would start. */
import type { LocalQueue, Preview, PreviewedWorkload } from "@/api/types";

export type QueueName = Pick<LocalQueue, "namespace" | "name">;
type State = PreviewedWorkload["explanation"]["state"];

const KEPT = "kueueweb-last-queue";
/** Each queue that is tried is one question to the server. */
const MOST_TRIED = 8;
/** The sooner it starts, the smaller. */
const RANKS: Partial<Record<State, number>> = {
  FitsNow: 0,
  Preempts: 1,
  Waits: 2,
  NotQueued: 3,
  CannotStart: 4,
};
const UNKNOWN = 2;
const REFUSED = 5;

/** How soon all workloads of a preview start: 0 for now, 4 for never. */
export function rankOf({ workloads }: Pick<Preview, "workloads">): number {
  return Math.max(...workloads.map(({ explanation }) => RANKS[explanation.state] ?? UNKNOWN), 0);
}

export function lastQueue(): string | null {
  return window.localStorage.getItem(KEPT);
}

export function keepLastQueue({ namespace, name }: QueueName): void {
  window.localStorage.setItem(KEPT, `${namespace}/${name}`);
}

/** The place of the queue used last; of the first one if there is none. */
export function placeOfLast(queues: readonly QueueName[], last: string | null): number {
  return Math.max(
    0,
    queues.findIndex(({ namespace, name }) => `${namespace}/${name}` === last),
  );
}

export interface TriedQueue {
  place: number;
  rank: number;
}

/** Tries queues one after the other, until one starts it now; the best of them, the earlier of equals. */
export async function bestQueue(
  places: readonly number[],
  preview: (place: number) => Promise<Pick<Preview, "workloads">>,
): Promise<TriedQueue | null> {
  let best: TriedQueue | null = null;
  for (const place of places.slice(0, MOST_TRIED)) {
    const rank = await preview(place).then(rankOf, () => REFUSED);
    if (rank < (best?.rank ?? REFUSED)) best = { place, rank };
    if (rank === 0) break;
  }
  return best;
}

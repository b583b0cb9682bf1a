/** The query caches of moments of the past. */
import { QueryClient } from "@tanstack/react-query";

/** Marks the queries of a moment of the past. */
const PAST = { past: true };

export function isPast(queries: QueryClient): boolean {
  return queries.getDefaultOptions().queries?.meta === PAST;
}

const MAX_KEPT = 8;
const kept = new Map<string, QueryClient>();

/**
 * What is read of the past is kept apart from what is read of the present, and does not change. It is kept outside of the
 * page: a part that waits for its data has no state yet, and would begin anew each time.
 */
export function pastQueries(present: QueryClient, moment: string): QueryClient {
  const { queries } = present.getDefaultOptions();
  const found =
    kept.get(moment) ??
    new QueryClient({ defaultOptions: { queries: { ...queries, staleTime: 600_000, meta: PAST } } });
  kept.delete(moment);
  kept.set(moment, found);
  for (const oldest of kept.keys()) if (kept.size > MAX_KEPT) kept.delete(oldest);
  return found;
}

/** Forgets what was read of the past: another user may see something else. */
export function forgetPast(): void {
  kept.clear();
}

/** The query caches of moments of the past. */
import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/api/client";

/** Marks the queries of a moment of the past. */
const PAST = { past: true };

export function isPast(queries: QueryClient): boolean {
  return queries.getDefaultOptions().queries?.meta === PAST;
}

/** An explanation of the past takes the studio some seconds: until then the server answers so. */
const isStillExplained = (error: Error) => error instanceof ApiError && error.reason === "StillExplaining";
const PAUSE_MS = 1_500;
const MOST_PAUSES = 40;

const MAX_KEPT = 8;
const kept = new Map<string, QueryClient>();

/**
 * Answers about the past are kept apart from those about the present, and do not change. They are kept outside of the
 * page: a part that waits for its data has no state yet, and would start over each time.
 */
export function pastQueries(present: QueryClient, moment: string): QueryClient {
  const found = kept.get(moment) ?? newQueries(present);
  kept.delete(moment);
  kept.set(moment, found);
  for (const oldest of kept.keys()) if (kept.size > MAX_KEPT) kept.delete(oldest);
  return found;
}

function newQueries(present: QueryClient): QueryClient {
  const { queries } = present.getDefaultOptions();
  const retry = queries?.retry;
  return new QueryClient({
    defaultOptions: {
      queries: {
        ...queries,
        staleTime: 600_000,
        meta: PAST,
        retry: (failures, error) => {
          if (isStillExplained(error)) return failures < MOST_PAUSES;
          return typeof retry === "function" ? retry(failures, error) : false;
        },
        retryDelay: (failures, error) => (isStillExplained(error) ? PAUSE_MS : 1_000 * 2 ** failures),
      },
    },
  });
}

/** Forgets what was read of the past: another user may see something else. */
export function forgetPast(): void {
  kept.clear();
}

/** How the first reading of something goes. */
import type { UseQueryResult } from "@tanstack/react-query";
import { useRef } from "react";

export interface FirstRead {
  /** Nothing was heard yet, neither an answer nor a refusal. */
  waits: boolean;
  /** Why there is nothing to show. */
  error: Error | null;
}

/**
 * While nothing could be read, the last refusal stays until there is an answer: a query that asks again every few seconds
 * is "pending" at each try, and its panel would go back and forth between a placeholder and the error.
 */
export function useFirstRead({ data, error }: UseQueryResult<unknown>): FirstRead {
  const last = useRef<Error | null>(null);
  if (data !== undefined) last.current = null;
  else if (error !== null) last.current = error;
  return { waits: data === undefined && last.current === null, error: last.current };
}

/** Puts the moment that the pages show into the URL. */
import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";

/** `at` in ms since the epoch; null for the present. */
export function useChooseMoment(): (at: number | null) => void {
  const navigate = useNavigate();
  return useCallback(
    (at) =>
      void navigate({
        to: ".",
        search: (before: Record<string, unknown>) => ({
          ...before,
          at: at === null ? undefined : new Date(at).toISOString(),
        }),
        resetScroll: false,
      } as never),
    [navigate],
  );
}

/** The place of the last checkpoint at or before the moment; -1: there is none. */
export function placeOf(checkpoints: readonly number[], at: number): number {
  return checkpoints.findLastIndex((taken) => taken <= at);
}

/** One ticking clock for everything on screen that says how long ago. */
import { useSyncExternalStore } from "react";
import { shownMoment } from "./moment";

const TICK_MS = 1_000;
let now = Date.now();
let timer: number | null = null;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= window.setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    window.clearInterval(timer);
    timer = null;
  };
}

function shown(): number {
  const at = shownMoment();
  return at === null ? now : Date.parse(at);
}

/** Now in ms since the epoch, renewed each second; of the past, the moment that is shown. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, shown);
}

/** Which cluster the screen shows, and its live stream. */
import { type Query, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { LiveConnection, type LiveState } from "@/api/live/live";
import { hasMoved } from "@/api/live/live-data";
import { throttle } from "@/lib/throttle";
import { basePath } from "@/lib/url/base-path";
import { isSeveral } from "@/lib/url/clusters";
import { sessionKey } from "./session";
import { workloadKeys } from "./workloads";

const ClusterContext = createContext<{ cluster: string; live: LiveConnection } | null>(null);

function liveUrl(cluster: string): string {
  const scheme = window.location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${window.location.host}${basePath}/ws/live/?cluster=${encodeURIComponent(cluster)}`;
}

/**
 * Opens the one socket of this tab for the cluster, and keeps lists in step with what it says. The stream is one cluster's:
 * while several are on screen there is none, and lists are read again every few seconds.
 */
export function ClusterProvider({ cluster, children }: { cluster: string; children: ReactNode }) {
  const live = useMemo(() => new LiveConnection(liveUrl(cluster)), [cluster]);
  const value = useMemo(() => ({ cluster, live }), [cluster, live]);
  useEffect(() => {
    if (isSeveral(cluster)) return;
    live.start();
    const online = () => live.reconnectNow();
    const visible = () => document.visibilityState === "visible" && live.checkFreshness();
    window.addEventListener("online", online);
    document.addEventListener("visibilitychange", visible);
    return () => {
      window.removeEventListener("online", online);
      document.removeEventListener("visibilitychange", visible);
      live.stop();
    };
  }, [cluster, live]);
  useFollowLive(cluster, live);
  return <ClusterContext value={value}>{children}</ClusterContext>;
}

/**
 * On a busy cluster something moves all the time. Lists are read again as often as a decision has to be seen soon, and
 * less often where reading them takes long: it shall take a sixth of the time at most.
 */
const MIN_LISTS_PAUSE_MS = 250;
const MAX_LISTS_PAUSE_MS = 3_000;
const PAUSE_PER_READING = 5;

/** Of several clusters, whose movement nobody tells. */
export const SEVERAL_RENEW_MS = 5_000;

const MAX_PAGES_FOLLOWED = 3;

/** Whoever has paged far into a list reads it; reading all of it again every few seconds would cost more than it says. */
function isShort({ state }: Query): boolean {
  const pages = (state.data as { pages?: unknown[] } | undefined)?.pages;
  return pages === undefined || pages.length <= MAX_PAGES_FOLLOWED;
}

/** Reads lists again when the live numbers moved, at once after a quiet while; and the session when the socket was refused. */
function useFollowLive(cluster: string, live: LiveConnection): void {
  const queries = useQueryClient();
  useEffect(() => {
    let seen = live.getState().data;
    let pauseMs = MIN_LISTS_PAUSE_MS;
    const read = async () => {
      const started = performance.now();
      await queries.invalidateQueries({ queryKey: workloadKeys.all(cluster), predicate: isShort });
      const wanted = PAUSE_PER_READING * (performance.now() - started);
      pauseMs = Math.min(MAX_LISTS_PAUSE_MS, Math.max(MIN_LISTS_PAUSE_MS, wanted));
    };
    const lists = throttle(
      () => void read(),
      () => pauseMs,
    );
    if (isSeveral(cluster)) {
      const timer = window.setInterval(lists.ask, SEVERAL_RENEW_MS);
      return () => {
        window.clearInterval(timer);
        lists.stop();
      };
    }
    const unsubscribe = live.subscribe(() => {
      const { data, status } = live.getState();
      if (status === "refused") void queries.invalidateQueries({ queryKey: sessionKey });
      if (data === null || !hasMoved(seen, data)) return;
      seen = data;
      lists.ask();
    });
    return () => {
      unsubscribe();
      lists.stop();
    };
  }, [cluster, live, queries]);
}

function useClusterContext() {
  const value = useContext(ClusterContext);
  if (value === null) throw new Error("outside of ClusterProvider");
  return value;
}

/** The name of the cluster on screen; on pages that span clusters also several, as the API takes them. */
export function useCluster(): string {
  return useClusterContext().cluster;
}

/** Whether the page shows several clusters. */
export function useIsSeveral(): boolean {
  return isSeveral(useClusterContext().cluster);
}

/** Whose a row is, for tables that say so while several clusters are on screen. */
export function useClusterOf<Row>(clusterOf: (row: Row) => string): ((row: Row) => string) | undefined {
  return useIsSeveral() ? clusterOf : undefined;
}

/** What the way to a row's page adds to its search while several clusters are on screen: the row's own. */
export function useInCluster(): (row: { cluster: string }) => { search?: { cluster: string } } {
  const several = useIsSeveral();
  return ({ cluster }) => (several ? { search: { cluster } } : {});
}

/** A part of the live state; the selector must return a value that stays the same while nothing changed. */
export function useLive<Part>(select: (state: LiveState) => Part): Part {
  const { live } = useClusterContext();
  return useSyncExternalStore(live.subscribe, () => select(live.getState()));
}

/** Tries the socket again at once. */
export function useReconnect(): () => void {
  const { live } = useClusterContext();
  return () => live.reconnectNow();
}

/** The cluster on screen, and its live stream. */
import { useQuery } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
} from "react";
import { useFollowLive } from "@/api/live/follow";
import { LiveConnection, type LiveState, pastState } from "@/api/live/live";
import { figuresQuery } from "@/api/past/past";
import { basePath } from "@/lib/url/base-path";
import { chosenClusters, isSeveral } from "@/lib/url/clusters";
import { sessionQuery } from "./session";

/** The part of the live stream, or of a moment of the past, that pages read. */
type LiveSource = Pick<LiveConnection, "getState" | "subscribe" | "reconnectNow">;

const ClusterContext = createContext<{ cluster: string; live: LiveSource } | null>(null);

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

/** Shows the figures of a moment of the past where the live stream would be: they stay the same. */
export function PastClusterProvider({
  cluster,
  at,
  children,
}: {
  cluster: string;
  at: string;
  children: ReactNode;
}) {
  const figures = useQuery(figuresQuery(cluster, at)).data;
  const value = useMemo(() => {
    const state = pastState(figures?.data ?? null, figures?.takenAt ?? null);
    return { cluster, live: { getState: () => state, subscribe: () => () => {}, reconnectNow: () => {} } };
  }, [cluster, figures]);
  return <ClusterContext value={value}>{children}</ClusterContext>;
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

/** The names of the clusters on screen; of all those that the reader knows, once the session is there. */
export function useClusterNames(): string[] {
  const { cluster } = useClusterContext();
  const known = useQuery(sessionQuery()).data?.clusters;
  if (!isSeveral(cluster)) return [cluster];
  return chosenClusters(cluster, known?.map(({ name }) => name) ?? []);
}

/** For which cluster something is made: that on screen, or, of several, the one that the reader chooses. */
export function useTarget(): { names: string[]; cluster: string; choose: (name: string) => void } {
  const names = useClusterNames();
  const [chosen, choose] = useState("");
  return { names, cluster: names.find((name) => name === chosen) ?? names[0] ?? "", choose };
}

/** The cluster of a row, for tables that show it while several clusters are on screen. */
export function useClusterOf<Row>(clusterOf: (row: Row) => string): ((row: Row) => string) | undefined {
  return useIsSeveral() ? clusterOf : undefined;
}

/** The search that the link to a row's page gets while several clusters are on screen: the row's own cluster. */
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

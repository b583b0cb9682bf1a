/** A moment of the past on screen: its figures, its own query cache, and a session that may change nothing. */
import {
  type QueryClient,
  QueryClientProvider,
  queryOptions,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { type ReactNode, useEffect, useLayoutEffect, useMemo } from "react";
import { answer, api } from "@/api/client";
import { sessionKey, sessionQuery } from "@/api/session";
import { showMoment } from "@/lib/moment";
import { isPast, pastQueries } from "./queries";

/** The moments of which checkpoints are kept, in ms since the epoch, the earliest first. */
export function checkpointsQuery(cluster: string) {
  return queryOptions({
    queryKey: ["checkpoints", cluster] as const,
    queryFn: async ({ signal }) => {
      const params = { query: { cluster } };
      const { taken_at } = await answer(api.GET("/api/v1/checkpoints/", { params, signal }));
      return taken_at.map((at) => Date.parse(at));
    },
    staleTime: 60_000,
  });
}

export function figuresQuery(cluster: string, at: string) {
  return queryOptions({
    queryKey: ["figures", cluster, at] as const,
    queryFn: async ({ signal }) => {
      const params = { query: { cluster, at } };
      const { data, response } = await api.GET("/api/v1/checkpoints/figures/", { params, signal });
      const exact = response.headers.get("Kueueweb-Exact") === "true";
      return { data, takenAt: response.headers.get("Kueueweb-Checkpoint") ?? at, exact };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Everything inside shows that moment. It must be made again for another one. */
export function PastMoment({ cluster, at, children }: { cluster: string; at: string; children: ReactNode }) {
  const present = useQueryClient();
  const queries = useMemo(() => pastQueries(present, `${cluster} ${at}`), [present, cluster, at]);
  showMoment(at);
  // Before the parts' queries start, which they do in effects: the moment that was shown before is forgotten only now.
  useLayoutEffect(() => {
    showMoment(at);
    return () => showMoment(null);
  }, [at]);
  return (
    <QueryClientProvider client={queries}>
      <NoticeLogout present={present} />
      {children}
    </QueryClientProvider>
  );
}

/** A session that has ended leads to the login, also from the past. */
function NoticeLogout({ present }: { present: QueryClient }) {
  const ended = useQuery(sessionQuery()).data?.authenticated === false;
  useEffect(() => {
    if (ended) void present.invalidateQueries({ queryKey: sessionKey });
  }, [ended, present]);
  return null;
}

/** Whether the page shows the past: nothing can be done then. */
export function useIsPast(): boolean {
  return isPast(useQueryClient());
}

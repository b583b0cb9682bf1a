/** Marks on charts: preemptions, evictions, and edits of queues and settings. */
import { t } from "@lingui/core/macro";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { markedEditsQuery } from "@/api/audit";
import { useCluster } from "@/api/cluster";
import { markedDecisionsQuery } from "@/api/decisions";
import type { HistorySelection } from "@/api/history";
import { mayAudit, sessionQuery } from "@/api/session";
import type { TimeMark } from "@/components/figures/time-series";
import { minuteOf, type TimeRange } from "@/lib/url/time-range";

export interface Marks {
  marks: readonly TimeMark[];
  /** Whether there are more than are marked. */
  cut: boolean;
  version: string;
  /** Opens the decisions of the minute of a time. */
  onMoment: (seconds: number) => void;
}

export const MARK_COLORS = {
  preempted: "var(--mantine-color-red-6)",
  evicted: "var(--mantine-color-orange-6)",
  edited: "var(--mantine-color-blue-5)",
} as const;

export function useMarks({ scope, name }: Pick<HistorySelection, "scope" | "name">, range: TimeRange): Marks {
  const cluster = useCluster();
  const navigate = useNavigate();
  const { data: session } = useSuspenseQuery(sessionQuery());
  const queue = scope === "cluster_queue" ? name : undefined;
  const preempted = useQuery(markedDecisionsQuery(cluster, "Preempt", range, queue));
  const evicted = useQuery(markedDecisionsQuery(cluster, "Evict", range, queue));
  const edited = useQuery({ ...markedEditsQuery(cluster, range), enabled: mayAudit(session) });
  const marks = useMemo(() => {
    const seconds = (iso: string) => Date.parse(iso) / 1000;
    return [
      ...(preempted.data?.results ?? []).map((each) => ({
        time: seconds(each.decided_at),
        color: MARK_COLORS.preempted,
        text: t`${each.namespace}/${each.workload_name} preempted`,
      })),
      ...(evicted.data?.results ?? []).map((each) => ({
        time: seconds(each.decided_at),
        color: MARK_COLORS.evicted,
        text: t`${each.namespace}/${each.workload_name} evicted`,
      })),
      ...(edited.data?.results ?? [])
        .filter(({ kind, name }) => kind !== "ClusterQueue" || queue === undefined || name === queue)
        .map((each) => ({
          time: seconds(each.at),
          color: MARK_COLORS.edited,
          text: t`${each.kind} ${each.name} edited by ${each.username}`,
        })),
    ].toSorted((a, b) => a.time - b.time);
  }, [preempted.data, evicted.data, edited.data, queue]);
  const onMoment = useCallback(
    (time: number) =>
      void navigate({
        to: "/decisions",
        search: { ...minuteOf(time), ...(queue === undefined ? {} : { cluster_queue: queue }) },
      }),
    [navigate, queue],
  );
  return {
    marks,
    cut: [preempted, evicted, edited].some(({ data }) => data?.next != null),
    version: [preempted, evicted, edited].map(({ dataUpdatedAt }) => dataUpdatedAt).join(),
    onMoment,
  };
}

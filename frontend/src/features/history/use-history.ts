/** The series of a page: from the server when it opens, and moved on by the live stream. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { type HistorySelection, historyQuery } from "@/api/history";
import { useIsPast } from "@/api/past/past";
import type { LiveData } from "@/api/types";
import { CHART_RANGE } from "@/lib/url/chart-range";
import { boundedRange, lengthOf, parseTimeRange, type TimeRange } from "@/lib/url/time-range";
import { joinTail, keyOf, type SeriesKey, type TailPoint } from "./history-series";
import { useMarks } from "./use-marks";

export type LiveReader = (data: LiveData) => readonly (SeriesKey & { value: number })[];

/** The live stream speaks several times a second; a chart needs a point for each of its pixels at most. */
const POINTS_PER_RANGE = 600;
const MOST_TAIL_POINTS = 1_200;
const NO_TAIL: readonly TailPoint[] = [];

/** The time that the charts of this page show, as its URL says; empty for the default. */
export function useChartRange(): TimeRange {
  return parseTimeRange(useSearch({ strict: false }), CHART_RANGE);
}

/** Puts another range into the page's URL. */
export function useChooseRange(): (range: TimeRange) => void {
  const navigate = useNavigate();
  return useCallback(
    ({ last, since, until }) =>
      void navigate({
        to: ".",
        search: (before: Record<string, unknown>) => ({ ...before, last, since, until }),
        resetScroll: false,
      } as never),
    [navigate],
  );
}

/** `read` must stay the same function while the page does. */
export function useHistory(selection: Omit<HistorySelection, "range">, read: LiveReader) {
  const range = boundedRange(useChartRange(), CHART_RANGE);
  const query = useQuery(historyQuery(useCluster(), { ...selection, range }));
  const length = lengthOf(range, Date.now());
  const tail = useTail(read, length / POINTS_PER_RANGE);
  const history = query.data;
  const isPast = useIsPast();
  const live = range.until === undefined && !isPast;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tail grows in place, its version says so
  const series = useMemo(
    () => (history === undefined ? undefined : joinTail(history, live ? tail.points : NO_TAIL)),
    [history, live, tail.version],
  );
  const marks = useMarks(selection, range);
  return {
    frame: { ...marks, series, range, version: `${query.dataUpdatedAt} ${tail.version} ${marks.version}` },
    error: query.error,
    refetch: query.refetch,
  };
}

/** The values of the live stream since the page was opened; within one step the last value counts. */
function useTail(read: LiveReader, step: number): { points: TailPoint[]; version: string } {
  const points = useRef<TailPoint[]>([]);
  const data = useLive((live) => live.data);
  const time = useLive((live) => live.time);
  const fresh = useLive((live) => live.staleSince === null);
  useEffect(() => {
    points.current = [];
  }, []);
  if (data !== null && time !== null && fresh)
    note(points.current, Date.parse(time) / 1000, step, () => read(data));
  return { points: points.current, version: `${time} ${fresh}` };
}

function note(points: TailPoint[], time: number, step: number, read: () => ReturnType<LiveReader>): void {
  const last = points.at(-1);
  if (last !== undefined && time <= last.time) return;
  const before = points.at(-2);
  if (before !== undefined && time - before.time < step) points.pop();
  if (points.length >= MOST_TAIL_POINTS) points.shift();
  points.push({ time, values: new Map(read().map((found) => [keyOf(found), found.value])) });
}

/** The lines of charts: the server's series, then the values of the live stream since. */
import type { History, Metric } from "@/api/history";

export interface SeriesKey {
  metric: Metric;
  flavor?: string;
  resource?: string;
  reason?: string;
}

/** A moment of the live stream, with those values that it has. */
export interface TailPoint {
  /** Seconds since the epoch. */
  time: number;
  values: ReadonlyMap<string, number>;
}

export function keyOf({ metric, flavor = "", resource = "", reason = "" }: SeriesKey): string {
  return [metric, flavor, resource, reason].join("\n");
}

/** The time of the last step in which anything was known; -Infinity without one. */
export function lastKnownTime({ times, series }: History): number {
  for (let place = times.length - 1; place >= 0; place -= 1) {
    if (series.some((line) => line.values[place] !== null)) return times[place] ?? -Infinity;
  }
  return -Infinity;
}

function firstKnownTime({ times, series }: History): number | undefined {
  return times.find((_, place) => series.some((line) => line.values[place] !== null));
}

export interface HistorySeries {
  times: number[];
  /** The first time of which anything is known. */
  begin: number;
  step: number;
  /** The values of a series at each time; null where nothing is known. Undefined for one that does not exist. */
  find: (key: SeriesKey) => (number | null)[] | undefined;
  /** The series of a metric, by flavor, resource and reason. */
  keys: (metric: Metric) => SeriesKey[];
}

/** Steps beyond the last that is known are cut off, and the tail goes on from there. */
export function joinTail(history: History, tail: readonly TailPoint[]): HistorySeries {
  const end = lastKnownTime(history);
  const kept = history.times.filter((time) => time <= end);
  const later = tail.filter(({ time }) => time > end);
  const times = [...(kept.length > 0 ? kept : history.times), ...later.map(({ time }) => time)];
  const known = new Map(history.series.map((line) => [keyOf(line), line]));
  const length = times.length - later.length;
  return {
    times,
    begin: firstKnownTime(history) ?? later[0]?.time ?? times[0] ?? 0,
    step: history.step,
    find: (key) => {
      const line = known.get(keyOf(key));
      const live = later.map(({ values }) => values.get(keyOf(key)) ?? null);
      if (line === undefined && live.every((value) => value === null)) return undefined;
      const past = line?.values.slice(0, length) ?? Array<null>(length).fill(null);
      return [...past, ...live];
    },
    keys: (metric) => history.series.filter((line) => line.metric === metric),
  };
}

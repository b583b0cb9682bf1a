/** A range of time that a page shows, as it stands in the URL and as the API takes it. */
import { parseTexts } from "./texts";

/** Ranges that end now, in seconds. */
const RANGES = {
  "15m": 900,
  "1h": 3_600,
  "6h": 21_600,
  "24h": 86_400,
  "7d": 604_800,
  "30d": 2_592_000,
  "90d": 7_776_000,
  "365d": 31_536_000,
} as const;
export type Range = keyof typeof RANGES;
export const ALL_RANGES = Object.keys(RANGES) as Range[];

/** Either a range that moves on with the clock, or `since` and `until` in ISO 8601, the end not within. */
export interface TimeRange {
  last?: Range;
  since?: string;
  until?: string;
}

/** The time of a workload that is within the range. */
export const TIME_STEPS = ["submitted", "admitted", "finished"] as const;
export type TimeStep = (typeof TIME_STEPS)[number];

export interface WorkloadTimeRange extends TimeRange {
  /** When it was submitted without. */
  time?: TimeStep;
}

function isoOf(text: string | undefined): string | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/** The range of a URL's search, empty without one; the page's own default is left out. */
export function parseTimeRange(search: object, fallback?: Range): TimeRange {
  const texts = parseTexts(search as Record<string, unknown>, ["last", "since", "until"]);
  const last = ALL_RANGES.find((known) => known === texts.last);
  if (last !== undefined) return last === fallback ? {} : { last };
  const since = isoOf(texts.since);
  const until = isoOf(texts.until);
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
}

export function parseWorkloadTimeRange(search: object): WorkloadTimeRange {
  const range = parseTimeRange(search);
  const { time } = parseTexts(search as Record<string, unknown>, ["time"]);
  const step = TIME_STEPS.find((known) => known === time && known !== "submitted");
  return isEmpty(range) || step === undefined ? range : { ...range, time: step };
}

export function isEmpty(range: TimeRange): boolean {
  return Object.keys(range).length === 0;
}

export interface Bounds {
  since?: string;
  until?: string;
}

/** The range as the API takes it; one that ends now begins at a time of the clock. */
export function boundsOf({ last, since, until }: TimeRange, nowMs: number): Bounds {
  if (last !== undefined) return { since: new Date(nowMs - RANGES[last] * 1000).toISOString() };
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
}

/** Filters of a list with their range as the API takes it. */
export function withBounds<Filters extends TimeRange>(
  filters: Filters,
  nowMs: number,
): Omit<Filters, keyof TimeRange> & Bounds {
  return { ...withoutTime(filters), ...boundsOf(filters, nowMs) };
}

export function withoutTime<Filters extends TimeRange>(filters: Filters): Omit<Filters, keyof TimeRange> {
  const { last, since, until, ...plain } = filters;
  return plain;
}

/** A range with a beginning: where none is said, as long before the end as the default is. */
export function boundedRange(range: TimeRange, fallback: Range): TimeRange {
  if (range.last !== undefined || range.since !== undefined) return range;
  if (range.until === undefined) return { last: fallback };
  const since = new Date(Date.parse(range.until) - RANGES[fallback] * 1000).toISOString();
  return { since, until: range.until };
}

/** How long a range with a beginning is, in seconds. */
export function lengthOf({ last, since, until }: TimeRange, nowMs: number): number {
  if (last !== undefined) return RANGES[last];
  const end = until === undefined ? nowMs : Date.parse(until);
  return Math.max(1, (end - Date.parse(since ?? "")) / 1000);
}

type Bound = "since" | "until";
export type TimeQuery = Partial<Record<Bound | `admitted_${Bound}` | `finished_${Bound}`, string>>;

/** The range of one of a workload's times, as the API takes it. */
export function workloadTimeQuery(
  { time = "submitted", ...range }: WorkloadTimeRange,
  nowMs: number,
): TimeQuery {
  const { since, until } = boundsOf(range, nowMs);
  const prefix = time === "submitted" ? "" : (`${time}_` as const);
  const query: TimeQuery = {};
  if (since !== undefined) query[`${prefix}since`] = since;
  if (until !== undefined) query[`${prefix}until`] = until;
  return query;
}

/** The minute of a time, which it begins with. */
export function minuteOf(seconds: number): TimeRange {
  const begin = Math.floor(seconds / 60) * 60_000;
  return { since: new Date(begin).toISOString(), until: new Date(begin + 60_000).toISOString() };
}

/** A time as an input of date and time has it: in the reader's zone, to the minute. */
export function toLocalInput(iso: string | undefined): string {
  if (iso === undefined) return "";
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** A range of time that a list is narrowed to, as it stands in the URL and as the API takes it. */
import { parseTexts } from "./texts";

/** Ranges that end now, in seconds. */
export const RECENT = { "1h": 3600, "24h": 86_400, "7d": 604_800 } as const;
export type Recent = keyof typeof RECENT;

/** Which time of a workload is within the range. */
export const TIME_STEPS = ["submitted", "admitted", "finished"] as const;
export type TimeStep = (typeof TIME_STEPS)[number];

export interface TimeRange {
  /** When it was submitted without. */
  time?: TimeStep;
  /** A range that moves on with the clock; else `since` and `until`, in ISO 8601, the end not within. */
  last?: Recent;
  since?: string;
  until?: string;
}

export const TIME_KEYS = ["time", "last", "since", "until"] as const satisfies (keyof TimeRange)[];

function isoOf(text: string | undefined): string | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/** The range of a URL's search, empty without one. */
export function parseTimeRange(search: Record<string, unknown>): TimeRange {
  const texts = parseTexts(search, TIME_KEYS);
  const last = (Object.keys(RECENT) as Recent[]).find((known) => known === texts.last);
  const since = isoOf(texts.since);
  const until = isoOf(texts.until);
  if (last === undefined && since === undefined && until === undefined) return {};
  const time = TIME_STEPS.find((step) => step === texts.time && step !== "submitted");
  return {
    ...(time === undefined ? {} : { time }),
    ...(last !== undefined
      ? { last }
      : { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) }),
  };
}

type Bound = "since" | "until";
export type TimeQuery = Partial<Record<Bound | `admitted_${Bound}` | `finished_${Bound}`, string>>;

/** The range as the API takes it; one that ends now begins at a time of the clock. */
export function timeQuery({ time = "submitted", last, since, until }: TimeRange, nowMs: number): TimeQuery {
  const begin = last === undefined ? since : new Date(nowMs - RECENT[last] * 1000).toISOString();
  const prefix = time === "submitted" ? "" : (`${time}_` as const);
  const query: TimeQuery = {};
  if (begin !== undefined) query[`${prefix}since`] = begin;
  if (last === undefined && until !== undefined) query[`${prefix}until`] = until;
  return query;
}

/** A time as an input of date and time has it: in the reader's zone, to the minute. */
export function toLocalInput(iso: string | undefined): string {
  if (iso === undefined) return "";
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

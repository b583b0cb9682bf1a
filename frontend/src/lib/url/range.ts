/** How far back the charts of a page look; it stands in the URL. */

export const RANGES = {
  "15m": { label: "15 min", seconds: 900 },
  "1h": { label: "1 h", seconds: 3_600 },
  "6h": { label: "6 h", seconds: 21_600 },
  "24h": { label: "24 h", seconds: 86_400 },
  "7d": { label: "7 d", seconds: 604_800 },
  "30d": { label: "30 d", seconds: 2_592_000 },
  "90d": { label: "90 d", seconds: 7_776_000 },
} as const;

export type Range = keyof typeof RANGES;
export const DEFAULT_RANGE: Range = "1h";

export interface RangeSearch {
  /** Left out for the default. */
  range?: Range;
}

export function isRange(value: unknown): value is Range {
  return typeof value === "string" && Object.hasOwn(RANGES, value);
}

/** The part of a page's search that says how far back its charts look; anything else is dropped. */
export function parseRange(search: Record<string, unknown>): RangeSearch {
  return isRange(search.range) && search.range !== DEFAULT_RANGE ? { range: search.range } : {};
}

/** How far back the charts of a page look; it stands in the URL. */
/** In seconds. */
export const RANGES = {
  "15m": 900,
  "1h": 3_600,
  "6h": 21_600,
  "24h": 86_400,
  "7d": 604_800,
  "30d": 2_592_000,
  "90d": 7_776_000,
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

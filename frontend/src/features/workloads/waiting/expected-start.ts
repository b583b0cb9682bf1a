/** When a waiting workload may start: an interval in words, or why it is unknown. */
import { t } from "@lingui/core/macro";
import type { Workload } from "@/api/types";
import { formatAge } from "@/lib/time";

type ExpectedStart = NonNullable<Workload["expected_start"]>;

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
/** Estimates are renewed each minute: an older one says how old it is. */
const OLD_SECONDS = 180;

type Unit = "min" | "h" | "d";

/** The unit of a whole sentence is that of its longest time, so that its numbers can be compared. */
function unitOf(seconds: number): Unit {
  if (seconds < 100 * MINUTE) return "min";
  return seconds < 48 * HOUR ? "h" : "d";
}

/** With one decimal where the number is small: "1.5 h" says more than "2 h". */
function inUnit(seconds: number, unit: Unit): number {
  const length = { min: MINUTE, h: HOUR, d: DAY }[unit];
  const amount = seconds / length;
  return unit === "min" || amount >= 10 ? Math.round(amount) : Math.round(amount * 10) / 10;
}

function withUnit(amount: number, unit: Unit): string {
  if (unit === "min") return t`${amount} min`;
  return unit === "h" ? t`${amount} h` : t`${amount} days`;
}

interface Quantiles {
  low: number;
  middle: number;
  high: number;
}

/** Seconds from now; null where they are unknown. */
function quantiles({ p10_at, p50_at, p90_at }: ExpectedStart, now: number): Quantiles | null {
  if (p10_at === null || p50_at === null || p90_at === null) return null;
  const [low = 0, middle = 0, high = 0] = [p10_at, p50_at, p90_at].map((at) =>
    Math.max(0, (Date.parse(at) - now) / 1000),
  );
  return { low, middle, high };
}

function intervalWords({ low, middle, high }: Quantiles): string {
  if (high < MINUTE) return t`Expected to start within a minute.`;
  const unit = unitOf(high);
  const most = withUnit(Math.max(inUnit(high, unit), 1), unit);
  const probably = middle < MINUTE ? t`1 min` : withUnit(inUnit(middle, unitOf(middle)), unitOf(middle));
  const least = inUnit(low, unit);
  if (least === 0) return t`Expected to start within ${most}, probably in ${probably}.`;
  return t`Expected to start in between ${least} and ${most}, probably in ${probably}.`;
}

function reasonWords(reason: string): string {
  switch (reason) {
    case "DecidedElsewhere":
      return t`Start unknown: another scheduler decides in this cluster.`;
    case "NotQueued":
      return t`Start unknown: it is on hold.`;
    case "NoRunEnded":
      return t`Start unknown: too few workloads have ended here to know how long they run.`;
    case "NoStartForeseen":
      return t`Start unknown: it would not start even if all running workloads ended.`;
    case "BeyondReach":
      return t`Start unknown: it is too far in the future to estimate.`;
    case "Outdated":
      return t`Start unknown: the last estimate is too old, as no studio renews it.`;
    default:
      return t`Start not estimated yet.`;
  }
}

/** A sentence or two; empty for a workload that does not wait. */
export function expectedWords(expected: ExpectedStart | null, now: number): string {
  if (expected === null) return "";
  const found = quantiles(expected, now);
  if (found === null) return reasonWords(expected.reason);
  const age = expected.made_at === null ? 0 : (now - Date.parse(expected.made_at)) / 1000;
  const words = intervalWords(found);
  if (age < OLD_SECONDS) return words;
  return `${words} ${t`Estimated ${formatAge(age)} ago.`}`;
}

/** For a cell of a table: the interval alone; a dash where it is unknown. */
export function expectedShort(expected: ExpectedStart | null, now: number): string {
  const found = expected === null ? null : quantiles(expected, now);
  if (found === null) return expected === null ? "" : "–";
  const unit = unitOf(found.high);
  const least = inUnit(found.low, unit);
  const most = withUnit(Math.max(inUnit(found.high, unit), 1), unit);
  return least === 0 ? `< ${most}` : `${least}–${most}`;
}

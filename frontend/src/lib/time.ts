/** Times and durations for people. Times of the API are ISO 8601 in UTC and are shown in the reader's zone. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration in its two largest units: "5s", "3m 20s", "2h 5m", "4d 1h". */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole}s`;
  const [unit, large, small, next] =
    whole < HOUR
      ? ([MINUTE, "m", "s", 1] as const)
      : whole < DAY
        ? ([HOUR, "h", "m", MINUTE] as const)
        : ([DAY, "d", "h", HOUR] as const);
  const rest = Math.floor((whole % unit) / next);
  return rest === 0
    ? `${Math.floor(whole / unit)}${large}`
    : `${Math.floor(whole / unit)}${large} ${rest}${small}`;
}

/** A duration in its largest unit, rounded down: "5s", "3m", "2h", "4d". */
export function formatAge(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole}s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)}m`;
  return whole < DAY ? `${Math.floor(whole / HOUR)}h` : `${Math.floor(whole / DAY)}d`;
}

/** How long ago: "12s ago"; a clock that runs a little ahead of ours gives "just now". */
export function formatAgo(iso: string, nowMs: number): string {
  const seconds = (nowMs - Date.parse(iso)) / 1000;
  return seconds < 2 ? "just now" : `${formatAge(seconds)} ago`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", hourCycle: "h23" });

/** The time of day, "14:03:59". */
export function formatClock(ms: number): string {
  return CLOCK.format(ms);
}

/** Date, time and zone in full. */
export function formatTimestamp(iso: string): string {
  return FULL.format(Date.parse(iso));
}

/** Seconds between two times of the API; up to now if the second is missing; null if the first is. */
export function secondsBetween(from: string | null, to: string | null, nowMs: number): number | null {
  if (from === null) return null;
  return Math.max(0, ((to === null ? nowMs : Date.parse(to)) - Date.parse(from)) / 1000);
}

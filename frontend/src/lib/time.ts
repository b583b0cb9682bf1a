/** Times and durations for people. Times of the API are ISO 8601 in UTC and are shown in the reader's zone. */
import { t } from "@lingui/core/macro";
import { inLanguage } from "./language";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function units(): Record<"second" | "minute" | "hour" | "day", (count: number) => string> {
  return {
    second: (count) => t`${count}s`,
    minute: (count) => t`${count}m`,
    hour: (count) => t`${count}h`,
    day: (count) => t`${count}d`,
  };
}

/** A duration in its two largest units: "5s", "3m 20s", "2h 5m", "4d 1h". */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const { second, minute, hour, day } = units();
  if (whole < MINUTE) return second(whole);
  const [unit, large, small, next] =
    whole < HOUR
      ? ([MINUTE, minute, second, 1] as const)
      : whole < DAY
        ? ([HOUR, hour, minute, MINUTE] as const)
        : ([DAY, day, hour, HOUR] as const);
  const rest = Math.floor((whole % unit) / next);
  const first = large(Math.floor(whole / unit));
  return rest === 0 ? first : `${first} ${small(rest)}`;
}

/** A short time: "12 ms", "1.24 s"; above a minute as other durations. */
export function formatMilliseconds(seconds: number): string {
  if (seconds >= MINUTE) return formatDuration(seconds);
  return seconds < 1 ? t`${Math.round(seconds * 1000)} ms` : t`${seconds.toFixed(2)} s`;
}

type Units = ReturnType<typeof units>;

/** For narrow columns, where languages write their units out otherwise. */
function shortUnits(): Units {
  return {
    second: (count) => t({ context: "in a narrow column", message: `${count}s` }),
    minute: (count) => t({ context: "in a narrow column", message: `${count}m` }),
    hour: (count) => t({ context: "in a narrow column", message: `${count}h` }),
    day: (count) => t({ context: "in a narrow column", message: `${count}d` }),
  };
}

/** A duration in its largest unit, rounded down, as short as it can be: "5s", "3m", "2h", "4d". */
export function formatShortAge(seconds: number): string {
  return age(seconds, shortUnits());
}

/** A duration in its largest unit, rounded down: "5s", "3m", "2h", "4d". */
export function formatAge(seconds: number): string {
  return age(seconds, units());
}

function age(seconds: number, { second, minute, hour, day }: Units): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return second(whole);
  if (whole < HOUR) return minute(Math.floor(whole / MINUTE));
  return whole < DAY ? hour(Math.floor(whole / HOUR)) : day(Math.floor(whole / DAY));
}

/** How long ago: "12s ago"; a clock that runs a little ahead of ours gives "just now". */
export function formatAgo(iso: string, nowMs: number): string {
  const seconds = (nowMs - Date.parse(iso)) / 1000;
  return seconds < 2 ? t`just now` : t`${formatAge(seconds)} ago`;
}

const CLOCK = inLanguage(
  (locale) =>
    new Intl.DateTimeFormat(locale, {
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    }),
);
const FULL = inLanguage(
  (locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long", hourCycle: "h23" }),
);

/** The time of day, "14:03:59". */
export function formatClock(ms: number): string {
  return CLOCK().format(ms);
}

/** Date, time and zone in full. */
export function formatTimestamp(iso: string): string {
  return FULL().format(Date.parse(iso));
}

/** Seconds between two times of the API; up to now if the second is missing; null if the first is. */
export function secondsBetween(from: string | null, to: string | null, nowMs: number): number | null {
  if (from === null) return null;
  return Math.max(0, ((to === null ? nowMs : Date.parse(to)) - Date.parse(from)) / 1000);
}

const MINUTE_OF_DAY = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;

function inEnglishOrder(options: Intl.DateTimeFormatOptions) {
  return inLanguage((locale) => new Intl.DateTimeFormat(locale === "en" ? "en-GB" : locale, options));
}

const DAY_MINUTE = inEnglishOrder({ day: "numeric", month: "short", ...MINUTE_OF_DAY });
const YEAR_MINUTE = inEnglishOrder({ year: "numeric", day: "numeric", month: "short", ...MINUTE_OF_DAY });
const TIME_OF_DAY = inEnglishOrder(MINUTE_OF_DAY);

/** "26 Nov, 14:05"; only the time of day on the day of `beside`, and with the year in another one than this. */
export function formatMinute(iso: string, beside?: string): string {
  const at = new Date(iso);
  if (beside !== undefined && new Date(beside).toDateString() === at.toDateString())
    return TIME_OF_DAY().format(at);
  return (at.getFullYear() === new Date().getFullYear() ? DAY_MINUTE : YEAR_MINUTE)().format(at);
}

/** The reader's zone by its name, and how far it is from UTC now: "Europe/Berlin (GMT+1)". */
export function zoneName(): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const parts = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "shortOffset" }).formatToParts();
  const offset = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
  return offset === "" || offset === timeZone ? timeZone : `${timeZone} (${offset})`;
}

/** "14:05:12" of today, and "26 Nov, 14:05" of another day. */
export function formatLogTime(iso: string): string {
  const at = new Date(iso);
  return at.toDateString() === new Date().toDateString() ? formatClock(at.getTime()) : formatMinute(iso);
}

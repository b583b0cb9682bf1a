/** The days that the calendar of reservations shows, as they stand in the URL. */

export interface CalendarPeriod {
  /** The first day in the reader's zone, "2026-12-01"; today if absent. */
  from?: string;
  /** A week if absent. */
  days?: 28;
}

const WEEK = 7;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

export function parseCalendarPeriod({ from, days }: Record<string, unknown>): CalendarPeriod {
  const isDay = typeof from === "string" && DAY.test(from) && !Number.isNaN(Date.parse(from));
  return { ...(isDay ? { from } : {}), ...(Number(days) === 28 ? { days: 28 } : {}) };
}

/** The beginnings of the days in ms since the epoch, and after them the end of the last one. A day may have 23 or 25 hours. */
export function daysOf({ from, days }: CalendarPeriod, now: number): number[] {
  const first = from === undefined ? new Date(now) : new Date(`${from}T00:00`);
  return Array.from({ length: (days ?? WEEK) + 1 }, (_, day) =>
    new Date(first.getFullYear(), first.getMonth(), first.getDate() + day).getTime(),
  );
}

/** The period that is `steps` lengths later. */
export function shifted(period: CalendarPeriod, steps: number, now: number): CalendarPeriod {
  const days = period.days ?? WEEK;
  const [first = now] = daysOf(period, now);
  const at = new Date(first);
  return { ...period, from: dayOf(new Date(at.getFullYear(), at.getMonth(), at.getDate() + steps * days)) };
}

function dayOf(at: Date): string {
  const two = (number: number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

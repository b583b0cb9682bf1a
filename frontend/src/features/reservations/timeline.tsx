/** The windows on a line of time, a row for each reservation. */
import { t } from "@lingui/core/macro";
import { Text } from "@mantine/core";
import type { CSSProperties } from "react";
import { inLanguage } from "@/lib/language";
import classes from "./reservations.module.css";
import { type Reservation, stateWords, windowText } from "./windows";

interface TimelineProps {
  reservations: readonly Reservation[];
  /** The beginnings of the days, and the end of the last one, in ms since the epoch. */
  days: readonly number[];
  now: number;
}

const WEEKDAY = inLanguage(
  (locale) =>
    new Intl.DateTimeFormat(locale === "en" ? "en-GB" : locale, { weekday: "short", day: "numeric" }),
);
const DATE = inLanguage(
  (locale) => new Intl.DateTimeFormat(locale === "en" ? "en-GB" : locale, { month: "short", day: "numeric" }),
);
/** More days have no room for a label each. */
const MOST_LABELLED = 7;

export function Timeline({ reservations, days, now }: TimelineProps) {
  const since = days[0] ?? now;
  const until = days.at(-1) ?? now;
  const place = (at: number) =>
    `${(100 * (Math.min(Math.max(at, since), until) - since)) / (until - since)}%`;
  const isLong = days.length - 1 > MOST_LABELLED;
  return (
    <div className={classes.timeline} role="img" aria-label={t`Windows of the reservations`}>
      <div />
      <div className={classes.days}>
        {days.slice(0, -1).map(
          (day, at) =>
            (!isLong || at % MOST_LABELLED === 0) && (
              <Text key={day} span fz="xs" c="var(--kw-muted)" style={{ left: place(day) }}>
                {(isLong ? DATE : WEEKDAY)().format(day)}
              </Text>
            ),
        )}
      </div>
      {reservations.map(({ name, windows }) => (
        <div key={name} className={classes.row}>
          <Text fz="sm" truncate title={name}>
            {name}
          </Text>
          <div className={classes.track}>
            {days.slice(1, -1).map((day) => (
              <span key={day} className={classes.midnight} style={{ left: place(day) }} />
            ))}
            {windows.map((window) => (
              <span
                key={window.starts_at}
                className={classes.window}
                data-state={window.state}
                title={`${windowText(window)}: ${stateWords()[window.state].label}`}
                style={
                  {
                    left: place(Date.parse(window.starts_at)),
                    right: `calc(100% - ${place(Date.parse(window.ends_at))})`,
                  } as CSSProperties
                }
              />
            ))}
            {since <= now && now < until && <span className={classes.now} style={{ left: place(now) }} />}
          </div>
        </div>
      ))}
    </div>
  );
}

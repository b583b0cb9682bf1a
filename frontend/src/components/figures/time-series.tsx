/** Lines over time. The data may grow in place; `version` tells the chart that it did. */
import { t } from "@lingui/core/macro";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { inLanguage } from "@/lib/language";
import { textScale } from "@/lib/text-scale";
import classes from "./time-series.module.css";

export interface TimeSeriesLine {
  label: string;
  /** A CSS colour; may be a variable. */
  color: string;
  /** One value per time; null where nothing is known. */
  values: (number | null)[];
  fill?: boolean;
  /** A limit: dashed and thin. */
  limit?: boolean;
}

/** An event at a time: a small triangle above the lines. */
export interface TimeMark {
  /** Seconds since the epoch. */
  time: number;
  /** A CSS colour; may be a variable. */
  color: string;
  text: string;
}

/** Powers of two for bytes; seconds, minutes and hours for durations. */
export type Ticks = "decimal" | "binary" | "duration";

export interface TimeSeriesProps {
  /** Read out as the chart's name. */
  label: string;
  /** Seconds since the epoch, rising. */
  times: number[];
  lines: TimeSeriesLine[];
  version: unknown;
  format: (value: number) => string;
  /** The ticks of the values' axis. */
  ticks?: Ticks;
  /** The top of the scale at least; the data may exceed it. */
  atLeast?: number;
  height?: number;
  /** How much time the chart shows, up to its last point; all of it without. */
  spanSeconds?: number;
  /** From one time to another, in seconds since the epoch, instead of up to the last point. */
  from?: number;
  to?: number;
  marks?: readonly TimeMark[];
  /** Asked for the range of time that was drawn over with the pointer. */
  onZoom?: (range: { since: string; until: string }) => void;
  /** Asked for what happened at a time, by a click or Enter. */
  onMoment?: (seconds: number) => void;
  /** Charts with the same name move one cursor. */
  cursor?: string;
}

const MIN_SPAN_SECONDS = 120;
/** Between two labels of the time axis, in px: "20:54:15" and air. */
const LABEL_SPACE = 84;
const DAY = 86_400;
const TIME_STEPS = [
  ...[15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200],
  ...[1, 2, 7, 14, 28].map((days) => days * DAY),
];
const BINARY_STEPS = Array.from({ length: 40 }, (_, power) => 2 ** power);
const DURATION_STEPS = [1, 2, 5, 10, ...TIME_STEPS.filter((step) => step !== 15)];
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

function resolve(element: Element, color: string): string {
  const name = /^var\((--[^)]+)\)$/.exec(color)?.[1];
  return name === undefined ? color : getComputedStyle(element).getPropertyValue(name).trim();
}

export function TimeSeries(props: TimeSeriesProps) {
  const { label } = props;
  const height = (props.height ?? 180) * textScale();
  const scheme = useComputedColorScheme();
  /** The point that the keyboard chose; null without one. */
  const [place, setPlace] = useState<number | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the scheme changes the colours, the labels the lines
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const options = chartOptions(element, latest.current, height, () => latest.current);
    const drawn = new uPlot(options, chartData(latest.current), element);
    chart.current = drawn;
    const observer = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      drawn.destroy();
      chart.current = null;
    };
  }, [scheme, height, props.lines.map((line) => line.label).join()]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the arrays grow in place, the version says so
  useEffect(() => {
    chart.current?.setData(chartData(latest.current));
  }, [props.version]);

  return (
    <figure className={classes.figure} aria-label={label}>
      <figcaption className={classes.legend}>
        {props.lines.map((line) => (
          <span key={line.label} className={classes.key}>
            <i style={{ background: line.color }} />
            {line.label}
            <b className="kw-number">{formatLast(line.values, props.format)}</b>
          </span>
        ))}
      </figcaption>
      <div
        ref={frame}
        className={classes.frame}
        style={{ height }}
        role="slider"
        tabIndex={0}
        aria-label={t`${label}: move through time with the arrow keys`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, props.times.length - 1)}
        aria-valuenow={place ?? Math.max(0, props.times.length - 1)}
        aria-valuetext={readOut(props, place ?? props.times.length - 1)}
        onKeyDown={(event) => {
          const here = props.times[place ?? props.times.length - 1];
          if (event.key === "Enter" && here !== undefined) props.onMoment?.(here);
          const next = placeAfter(event.key, place, props.times.length);
          if (next === null || chart.current === null) return;
          event.preventDefault();
          setPlace(next);
          moveCursor(chart.current, next, props.cursor);
        }}
        onBlur={() => setPlace(null)}
      />
    </figure>
  );
}

const PAGE_OF_POINTS = 20;

/** The point to which a key leads; null for a key that moves nothing. */
function placeAfter(key: string, place: number | null, length: number): number | null {
  const last = length - 1;
  const here = place ?? last;
  const moved: Record<string, number> = {
    ArrowLeft: here - 1,
    ArrowRight: here + 1,
    PageDown: here - PAGE_OF_POINTS,
    PageUp: here + PAGE_OF_POINTS,
    Home: 0,
    End: last,
  };
  const next = moved[key];
  return next === undefined || length === 0 ? null : Math.min(last, Math.max(0, next));
}

/** Moves the cursor of this chart and of the charts that share it. */
function moveCursor(plot: uPlot, place: number, cursor: string | undefined): void {
  const time = plot.data[0][place];
  if (time === undefined) return;
  const together = cursor === undefined ? [plot] : uPlot.sync(cursor).plots;
  for (const each of together)
    each.setCursor({ left: each.valToPos(time, "x"), top: each.over.clientHeight / 2 }, true);
}

/** The values of the lines at a point, in the words of the tooltip. */
function readOut({ times, lines, format }: TimeSeriesProps, place: number): string {
  const time = times[place];
  if (time === undefined) return t`no data`;
  const values = lines.map(({ label, values }) => {
    const value = values[place];
    return `${label} ${value === null || value === undefined ? t`no data` : format(value)}`;
  });
  return [MOMENT().format(time * 1000), ...values].join(", ");
}

function formatLast(values: (number | null)[], format: (value: number) => string): string {
  // The last step may not be known of a line that the live stream does not speak of.
  const last = values.findLast((value) => value !== null);
  return last === null || last === undefined ? "–" : format(last);
}

function chartData({ times, lines }: TimeSeriesProps): uPlot.AlignedData {
  return [times, ...lines.map((line) => line.values)];
}

function chartOptions(
  element: HTMLElement,
  props: TimeSeriesProps,
  height: number,
  latest: () => TimeSeriesProps,
): uPlot.Options {
  const muted = resolve(element, "var(--kw-muted)");
  const grid = { stroke: resolve(element, "var(--kw-line)"), width: 1 };
  const scale = textScale();
  const font = `${11 * scale}px "Inter Variable", sans-serif`;
  const axis = { stroke: muted, grid, ticks: { show: false }, font };
  const format = (value: number) => props.format(value);
  return {
    width: element.clientWidth || 300,
    height,
    padding: [8, 26, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: true, y: false, setScale: false },
      // The time is what charts share; what is high on one may be low on another.
      ...(props.cursor === undefined ? {} : { sync: { key: props.cursor, scales: ["x", null] } }),
    },
    scales: {
      x: {
        range: (_, min, max) => {
          const { spanSeconds: span, from, to } = latest();
          if (from !== undefined && to !== undefined) return [from, to];
          return span === undefined ? [Math.min(min, max - MIN_SPAN_SECONDS), max] : [max - span, max];
        },
      },
      y: { range: (_, __, max) => [0, Math.max((max ?? 0) * 1.08, latest().atLeast ?? 1, 1)] },
    },
    axes: [
      {
        ...axis,
        size: 26 * scale,
        space: LABEL_SPACE * scale,
        incrs: TIME_STEPS,
        values: (_, splits, __, ___, step) => splits.map((time) => timeLabel(time, step)),
      },
      {
        ...axis,
        size: (plot, values) => widthOf(plot, values ?? [], font) + 14 * scale,
        incrs: { binary: BINARY_STEPS, duration: DURATION_STEPS, decimal: WHOLE_STEPS }[
          props.ticks ?? "decimal"
        ],
        values: (_, splits) => splits.map(format),
      },
    ],
    series: [
      {},
      ...props.lines.map((line) => {
        const color = resolve(element, line.color);
        return {
          label: line.label,
          stroke: color,
          width: line.limit === true ? 1.25 : 2,
          ...(line.limit === true ? { dash: [5, 4] } : {}),
          points: { show: true, size: 4, fill: color, filter: alone },
          ...(line.fill === true ? { fill: `color-mix(in srgb, ${color} 18%, transparent)` } : {}),
        };
      }),
    ],
    plugins: [tooltip(props, latest), marked(element, latest), pointed(latest)],
  };
}

/** The width of the longest label. */
function widthOf(plot: uPlot, labels: readonly string[], font: string): number {
  const { ctx } = plot;
  ctx.save();
  // The canvas is in the screen's pixels, the axis in those of the page.
  ctx.font = font;
  const widest = Math.max(0, ...labels.map((label) => ctx.measureText(label).width));
  ctx.restore();
  return Math.ceil(widest);
}

/** The points that no line leads to or from: without a dot they would not be seen. */
function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? [];
  const known = (place: number) => values[place] !== null && values[place] !== undefined;
  return Array.from(values.keys()).filter((place) => known(place) && !known(place - 1) && !known(place + 1));
}

const DAY_AND_MONTH = { day: "numeric", month: "short" } as const;
const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const SECONDS = { ...TIME, second: "2-digit" } as const;

/** Days before months in English: a chart's reader knows where they are, not whether "6/7" is in June. */
function dates(options: Intl.DateTimeFormatOptions) {
  return inLanguage((locale) => new Intl.DateTimeFormat(locale === "en" ? "en-GB" : locale, options));
}

const MOMENT = dates({ ...DAY_AND_MONTH, ...SECONDS });
const DATE = dates(DAY_AND_MONTH);
const CLOCK = dates(SECONDS);
const SHORT_CLOCK = dates(TIME);

function timeLabel(seconds: number, step: number): string {
  if (step >= DAY || new Date(seconds * 1000).getHours() + new Date(seconds * 1000).getMinutes() === 0)
    return DATE().format(seconds * 1000);
  return (seconds % 60 === 0 ? SHORT_CLOCK : CLOCK)().format(seconds * 1000);
}

const MARK_PX = 5;
const MAX_MARKS_NAMED = 4;

/** The marks within reach of a place, in px of the page. */
function marksAt(plot: uPlot, left: number, marks: readonly TimeMark[]): TimeMark[] {
  return marks.filter(({ time }) => Math.abs(plot.valToPos(time, "x") - left) <= MARK_PX);
}

/** Triangles above the lines, where something happened. */
function marked(element: Element, latest: () => TimeSeriesProps): uPlot.Plugin {
  return {
    hooks: {
      draw: ({ ctx, bbox, valToPos }) => {
        const size = MARK_PX * devicePixelRatio;
        ctx.save();
        for (const { time, color } of latest().marks ?? []) {
          const at = valToPos(time, "x", true);
          if (at < bbox.left || at > bbox.left + bbox.width) continue;
          ctx.fillStyle = resolve(element, color);
          ctx.beginPath();
          ctx.moveTo(at - size, bbox.top);
          ctx.lineTo(at + size, bbox.top);
          ctx.lineTo(at, bbox.top + 1.6 * size);
          ctx.fill();
        }
        ctx.restore();
      },
    },
  };
}

const LEAST_DRAG_PX = 5;
const LEAST_ZOOM_SECONDS = 60;

/** Drawing over a range shows only it; a click asks for its moment. */
function pointed(latest: () => TimeSeriesProps): uPlot.Plugin {
  return {
    hooks: {
      init: (plot) => {
        // Charts that share a cursor share its drags: only the one under the pointer speaks.
        let began: number | null = null;
        plot.over.addEventListener("pointerdown", (event) => {
          // A finger reads values: it neither zooms nor opens.
          const draws = event.button === 0 && event.pointerType !== "touch";
          began = draws ? placeOf(plot, event) : null;
        });
        document.addEventListener(
          "mouseup",
          (event) => {
            if (began === null) return;
            const ended = placeOf(plot, event);
            if (Math.abs(ended - began) >= LEAST_DRAG_PX) zoom(plot, began, ended, latest());
            else latest().onMoment?.(momentAt(plot, began, latest().marks ?? []));
            began = null;
          },
          { signal: endOf(plot) },
        );
      },
      // What was drawn over is shown as the new range, here and in the charts beside it.
      setSelect: (plot) => {
        if (plot.select.width > 0) plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      },
      destroy: (plot) => ends.get(plot)?.abort(),
    },
  };
}

/** In px of the page from the left end of the lines, and within them. */
function placeOf({ over }: uPlot, { clientX }: MouseEvent): number {
  const { left, width } = over.getBoundingClientRect();
  return Math.min(width, Math.max(0, clientX - left));
}

const ends = new WeakMap<uPlot, AbortController>();

/** Ends with the chart. */
function endOf(plot: uPlot): AbortSignal {
  const end = new AbortController();
  ends.set(plot, end);
  return end.signal;
}

/** The time of a mark in reach, or the pointer's. */
function momentAt(plot: uPlot, left: number, marks: readonly TimeMark[]): number {
  return marksAt(plot, left, marks)[0]?.time ?? plot.posToVal(left, "x");
}

function zoom(plot: uPlot, began: number, ended: number, { onZoom }: TimeSeriesProps): void {
  const since = plot.posToVal(Math.min(began, ended), "x");
  const until = Math.max(plot.posToVal(Math.max(began, ended), "x"), since + LEAST_ZOOM_SECONDS);
  const iso = (seconds: number) => new Date(Math.round(seconds) * 1000).toISOString();
  onZoom?.({ since: iso(since), until: iso(until) });
}

/** The values of the lines under the pointer. */
function tooltip(props: TimeSeriesProps, latest: () => TimeSeriesProps): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = classes.tooltip ?? "";
  return {
    hooks: {
      init: (plot) => plot.over.append(box),
      setCursor: (plot) => {
        const { idx, left = -1 } = plot.cursor;
        const time = idx === null || idx === undefined ? undefined : plot.data[0][idx];
        box.hidden = left < 0 || time === undefined;
        if (box.hidden || idx === null || idx === undefined || time === undefined) return;
        const rows = props.lines.map((line, place) => {
          const value = plot.data[place + 1]?.[idx];
          return `${line.label}: ${value === null || value === undefined ? t`no data` : props.format(value)}`;
        });
        const span = (plot.scales.x?.max ?? 0) - (plot.scales.x?.min ?? 0);
        const near = marksAt(plot, left, latest().marks ?? []);
        const named = near.slice(0, MAX_MARKS_NAMED).map(({ text }) => `▾ ${text}`);
        const more = near.length - named.length;
        box.textContent = [
          (span >= DAY / 4 ? MOMENT : CLOCK)().format(time * 1000),
          ...rows,
          ...named,
          ...(more > 0 ? [t`and ${more} more`] : []),
          ...(plot.over.matches(":hover") && latest().onMoment !== undefined
            ? [t`Click to list the decisions, drag to zoom`]
            : []),
        ].join("\n");
        const flip = left > plot.over.clientWidth / 2;
        box.style.left = flip ? "" : `${left + 12}px`;
        box.style.right = flip ? `${plot.over.clientWidth - left + 12}px` : "";
      },
    },
  };
}

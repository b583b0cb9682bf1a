/** Lines over time. The data may grow in place; `version` tells the chart that it did. */
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import classes from "./time-series.module.css";

export interface TimeSeriesLine {
  label: string;
  /** A CSS colour; may be a variable. */
  color: string;
  /** One value per time; null where nothing is known. */
  values: (number | null)[];
  fill?: boolean;
}

export interface TimeSeriesProps {
  /** Read out as the chart's name. */
  label: string;
  /** Seconds since the epoch, rising. */
  times: number[];
  lines: TimeSeriesLine[];
  version: unknown;
  format: (value: number) => string;
  /** Ticks at powers of two, for bytes. */
  binary?: boolean;
  /** The top of the scale at least; the data may exceed it. */
  atLeast?: number;
  height?: number;
}

const SHORTEST_SPAN_SECONDS = 120;
const TIME_STEPS = [15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400];
const BINARY_STEPS = Array.from({ length: 40 }, (_, power) => 2 ** power);
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

function resolve(element: Element, color: string): string {
  const name = /^var\((--[^)]+)\)$/.exec(color)?.[1];
  return name === undefined ? color : getComputedStyle(element).getPropertyValue(name).trim();
}

export function TimeSeries(props: TimeSeriesProps) {
  const { label, height = 180 } = props;
  const scheme = useComputedColorScheme();
  const frame = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the scheme changes the colours, the labels the lines
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const options = chartOptions(element, latest.current, height, () => latest.current.atLeast ?? 1);
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
      <div ref={frame} style={{ height }} />
    </figure>
  );
}

function formatLast(values: (number | null)[], format: (value: number) => string): string {
  const last = values.at(-1);
  return last === null || last === undefined ? "–" : format(last);
}

function chartData({ times, lines }: TimeSeriesProps): uPlot.AlignedData {
  return [times, ...lines.map((line) => line.values)];
}

function chartOptions(
  element: HTMLElement,
  props: TimeSeriesProps,
  height: number,
  atLeast: () => number,
): uPlot.Options {
  const muted = resolve(element, "var(--kw-muted)");
  const grid = { stroke: resolve(element, "var(--kw-line)"), width: 1 };
  const axis = { stroke: muted, grid, ticks: { show: false }, font: '11px "Inter Variable", sans-serif' };
  const format = (value: number) => props.format(value);
  return {
    width: element.clientWidth || 300,
    height,
    padding: [8, 26, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: {
      x: { range: (_, min, max) => [Math.min(min, max - SHORTEST_SPAN_SECONDS), max] },
      y: { range: (_, __, max) => [0, Math.max((max ?? 0) * 1.08, atLeast(), 1)] },
    },
    axes: [
      { ...axis, size: 26, incrs: TIME_STEPS, values: (_, splits) => splits.map(clockLabel) },
      {
        ...axis,
        size: 64,
        incrs: props.binary ? BINARY_STEPS : WHOLE_STEPS,
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
          width: 2,
          points: { show: false },
          ...(line.fill === true ? { fill: `color-mix(in srgb, ${color} 18%, transparent)` } : {}),
        };
      }),
    ],
    plugins: [tooltip(props)],
  };
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const SHORT_CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

function clockLabel(seconds: number): string {
  return (seconds % 60 === 0 ? SHORT_CLOCK : CLOCK).format(seconds * 1000);
}

/** What the lines were under the pointer. */
function tooltip(props: TimeSeriesProps): uPlot.Plugin {
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
          return `${line.label}: ${value === null || value === undefined ? "no data" : props.format(value)}`;
        });
        box.textContent = [CLOCK.format(time * 1000), ...rows].join("\n");
        const flip = left > plot.over.clientWidth / 2;
        box.style.left = flip ? "" : `${left + 12}px`;
        box.style.right = flip ? `${plot.over.clientWidth - left + 12}px` : "";
      },
    },
  };
}

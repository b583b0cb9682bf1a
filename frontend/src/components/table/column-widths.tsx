/**
 * Columns as wide as their reader wants them: dragged at the right edge of their head, or moved there with the arrow
 * keys. All edges of a table are one stop of the tab key; up and down lead from one to the next. The table's own columns have CSS widths (shares of the table), so the first change takes all of them in px as
 * they are on screen: then one column changes, and its neighbours stay.
 */
import { t } from "@lingui/core/macro";
import { type KeyboardEvent, type PointerEvent, type RefObject, useRef, useState } from "react";
import classes from "./data-table.module.css";

/** In px, by the ids of columns. */
export type ColumnWidths = Readonly<Record<string, number>>;

const MIN_WIDTH = 48;
const MAX_WIDTH = 1600;
const STEP = 8;
const LARGE_STEP = 48;
const NONE: ColumnWidths = {};

function bounded(width: number): number {
  return Math.round(Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, width)));
}

function measured(table: HTMLTableElement | null): ColumnWidths {
  const heads = [...(table?.querySelectorAll<HTMLElement>("th[data-column]") ?? [])];
  return Object.fromEntries(heads.map((head) => [head.dataset.column, bounded(head.offsetWidth)]));
}

export interface Resizing {
  widths: ColumnWidths;
  /** The widths as they are on screen, those of columns that were never changed included. */
  measure: () => ColumnWidths;
  /** Shows the widths while the reader still drags. */
  drag: (widths: ColumnWidths | null) => void;
  /** The column whose edge the tab key leads to. */
  stop: string | undefined;
  onStop: (column: string) => void;
  /** Keeps the widths; undefined goes back to the columns' own. */
  keep: (widths: ColumnWidths | undefined) => void;
}

/** The column widths of `kept`; without `onKeep`, the widths that the reader has chosen since the table was opened. */
export function useColumnWidths(
  table: RefObject<HTMLTableElement | null>,
  columns: readonly string[],
  kept: ColumnWidths | undefined,
  onKeep: ((widths: ColumnWidths | undefined) => void) | undefined,
): Resizing {
  const [dragged, setDragged] = useState<ColumnWidths | null>(null);
  const [own, setOwn] = useState<ColumnWidths | undefined>();
  const [stop, setStop] = useState<string | undefined>();
  const widths = (onKeep === undefined ? own : kept) ?? NONE;
  return {
    widths: dragged ?? widths,
    measure: () => ({ ...widths, ...measured(table.current) }),
    drag: setDragged,
    stop: stop !== undefined && columns.includes(stop) ? stop : columns[0],
    onStop: setStop,
    keep: (next) => {
      setDragged(null);
      (onKeep ?? setOwn)(next);
    },
  };
}

export interface ResizeHandleProps {
  column: string;
  /** The element that says what the column is called. */
  describedBy: string;
  resizing: Resizing;
}

export function ResizeHandle({ column, describedBy, resizing }: ResizeHandleProps) {
  const { widths, measure, drag, keep, stop, onStop } = resizing;
  const start = useRef<{ x: number; widths: ColumnWidths } | null>(null);
  const [now, setNow] = useState<number | undefined>();
  const at = (x: number): ColumnWidths => {
    const from = start.current;
    if (from === null) return widths;
    return { ...from.widths, [column]: bounded((from.widths[column] ?? 0) + x - from.x) };
  };
  const begin = (event: PointerEvent<HTMLElement>) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    start.current = { x: event.clientX, widths: measure() };
  };
  const end = (next: ColumnWidths | null) => {
    if (start.current === null) return;
    start.current = null;
    if (next === null) drag(null);
    else keep(next);
  };
  const press = (event: KeyboardEvent<HTMLElement>) => {
    const step = event.shiftKey ? LARGE_STEP : STEP;
    const change = { ArrowLeft: -step, ArrowRight: step }[event.key];
    const next = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (change !== undefined) {
      event.preventDefault();
      const present = measure();
      keep({ ...present, [column]: bounded((present[column] ?? 0) + change) });
    } else if (next !== undefined) {
      event.preventDefault();
      const edges = [
        ...(event.currentTarget.closest("tr")?.querySelectorAll<HTMLElement>("[role=separator]") ?? []),
      ];
      edges[edges.indexOf(event.currentTarget) + next]?.focus();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      keep(undefined);
    }
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: an <hr> takes no focus and has no value
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label={t`Column width: left and right arrows change it, up and down move to the next column, Delete resets all widths`}
      aria-describedby={describedBy}
      aria-valuenow={widths[column] ?? now ?? MIN_WIDTH}
      aria-valuemin={MIN_WIDTH}
      aria-valuemax={MAX_WIDTH}
      tabIndex={column === stop ? 0 : -1}
      className={classes.resize}
      onFocus={() => {
        setNow(measure()[column]);
        onStop(column);
      }}
      onPointerDown={begin}
      onPointerMove={(event) => start.current !== null && drag(at(event.clientX))}
      onPointerUp={(event) => end(event.clientX === start.current?.x ? null : at(event.clientX))}
      onPointerCancel={() => end(null)}
      onDoubleClick={() => keep(undefined)}
      onKeyDown={press}
    />
  );
}

/**
 * A table of any length: only the rows in view are in the page, more are asked for near the end, and the arrow keys walk
 * the rows. Rows come in the order in which they are shown; columns give way on narrow screens.
 */
import { t } from "@lingui/core/macro";
import { Skeleton } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type ColumnDef, columnVisibilityFeature, tableFeatures, useTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useMemo,
  useRef,
} from "react";
import { RowCluster } from "@/components/clusters/row-cluster";
import { Icon } from "@/components/icon";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { type ColumnWidths, ResizeHandle, type Resizing, useColumnWidths } from "./column-widths";
import classes from "./data-table.module.css";

export interface ColumnLook {
  /** Leaves the table below this width of the window, in px. */
  hideBelow?: number;
  /** Its place in a second line of the row, into which its cell moves where it leaves the table on a narrow window. */
  below?: number;
  align?: "right";
  /** A CSS width. */
  width?: string;
  /** The name of this order in `sort`; without it the column cannot be sorted. */
  sort?: string;
}

/** The name of an order, "-" before it for the largest first. */
export type Sort = string;

export interface Selection {
  keys: ReadonlySet<string>;
  onChange: (keys: ReadonlySet<string>) => void;
}

const features = tableFeatures({ columnVisibilityFeature, columnMeta: {} as ColumnLook });

export type DataColumn<Row extends object> = ColumnDef<typeof features, Row>;

export interface DataTableProps<Row extends object> {
  /** Read out as the table's name. */
  label: string;
  columns: DataColumn<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  onOpen?: (row: Row) => void;
  /** With it each row has a checkbox. */
  selection?: Selection | undefined;
  loading?: boolean;
  /** Shown instead of rows when there are none. */
  empty: ReactNode;
  /** Asked when the end comes near; absent when all is here. */
  onEnd?: (() => void) | undefined;
  loadingMore?: boolean;
  /** A CSS height of the scrolling frame. */
  height?: string;
  /** Columns that the reader left out, by their ids. */
  hidden?: readonly string[];
  /** The widths that the reader gave the columns. Without `onWidths` they last as long as the table. */
  widths?: ColumnWidths | undefined;
  onWidths?: ((widths: ColumnWidths | undefined) => void) | undefined;
  /** The order that the rows are in. */
  sort?: Sort | undefined;
  /** With it the heads of columns that have an order are buttons; undefined goes back to the list's own order. */
  onSort?: ((sort: Sort | undefined) => void) | undefined;
  /** The cluster of a row, where rows are of several. It gets a column, and the row's links lead there. */
  clusterOf?: ((row: Row) => string) | undefined;
}

function useColumns<Row extends object>({ columns, clusterOf }: DataTableProps<Row>): DataColumn<Row>[] {
  return useMemo(() => {
    if (clusterOf === undefined) return columns;
    const cluster: DataColumn<Row> = {
      id: "cluster",
      header: () => t`Cluster`,
      meta: { width: "124px" },
      cell: ({ row: { original } }) => <MiddleEllipsis text={clusterOf(original)} />,
    };
    const others = columns.map(narrower);
    return [...others.slice(0, 1), cluster, ...others.slice(1)];
  }, [columns, clusterOf]);
}

const LEFT_BY_CLUSTER = 0.85;

/** The column, narrower beside the cluster's: the column without a width, that of a name, would else have no room. */
function narrower<Row extends object>(column: DataColumn<Row>): DataColumn<Row> {
  const { width } = column.meta ?? {};
  if (width === undefined || !width.endsWith("%")) return column;
  return { ...column, meta: { ...column.meta, width: `${LEFT_BY_CLUSTER * Number.parseFloat(width)}%` } };
}

const NONE_HIDDEN: readonly string[] = [];
const ROW_HEIGHT = 33;
/** Rows have a second line up to this width of the window, in px. */
const TALL_UP_TO = 760;
/** The height of a row with a second line. */
const TALL_ROW_HEIGHT = 56;
const NARROW = [560, 760, 1000, 1240, 1800] as const;

interface Visibility {
  visible: Record<string, boolean>;
  /** The columns of the second line. */
  below: readonly string[];
}

function useVisibility<Row extends object>(
  columns: DataColumn<Row>[],
  hidden: readonly string[],
): Visibility {
  const narrow = [
    useMediaQuery(`(max-width: ${NARROW[0]}px)`),
    useMediaQuery(`(max-width: ${NARROW[1]}px)`),
    useMediaQuery(`(max-width: ${NARROW[2]}px)`),
    useMediaQuery(`(max-width: ${NARROW[3]}px)`),
    useMediaQuery(`(max-width: ${NARROW[4]}px)`),
  ];
  const place = narrow.indexOf(true);
  const width = NARROW[place] ?? Number.POSITIVE_INFINITY;
  return useMemo(() => {
    const wanted = columns.filter(({ id = "" }) => !hidden.includes(id));
    const fits = ({ meta }: DataColumn<Row>) => (meta?.hideBelow ?? 0) < width;
    const below = wanted.filter(
      (column) => width <= TALL_UP_TO && !fits(column) && column.meta?.below !== undefined,
    );
    return {
      visible: Object.fromEntries(
        columns.map((column) => [column.id ?? "", wanted.includes(column) && fits(column)]),
      ),
      below: below.toSorted((a, b) => (a.meta?.below ?? 0) - (b.meta?.below ?? 0)).map(({ id = "" }) => id),
    };
  }, [columns, width, hidden]);
}

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const {
    label,
    rows,
    rowKey,
    onOpen,
    selection,
    loading = false,
    empty,
    onEnd,
    loadingMore = false,
  } = props;
  const columns = useColumns(props);
  const { visible: columnVisibility, below } = useVisibility(columns, props.hidden ?? NONE_HIDDEN);
  const rowHeight = below.length > 0 ? TALL_ROW_HEIGHT : ROW_HEIGHT;
  const frame = useRef<HTMLDivElement>(null);
  const drawn = useRef<HTMLTableElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 8,
    initialRect: { width: 1000, height: 800 },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the table measures its rows again when their height changes
  useEffect(() => virtual.measure(), [rowHeight]);
  const shown = virtual.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? 0;
  // Only the rows in view: of ten thousand the model alone would take longer than a frame.
  const inView = useMemo(() => rows.slice(first, last + 1), [rows, first, last]);
  const table = useTable({ features, columns, data: inView, getRowId: rowKey, state: { columnVisibility } });
  const drawnColumns = table.getVisibleFlatColumns().map(({ id }) => id);
  const resizing = useColumnWidths(drawn, drawnColumns, props.widths, props.onWidths);
  useEffect(() => {
    if (onEnd !== undefined && !loadingMore && rows.length > 0 && last >= rows.length - 15) onEnd();
  }, [last, rows.length, onEnd, loadingMore]);

  const walk = (event: KeyboardEvent<HTMLTableRowElement>, place: number) => {
    if (event.target !== event.currentTarget) return;
    const row = rows[place];
    if (event.key === "Enter" && row !== undefined) {
      if (!(opensNewTab(event) && openNewTab(event.currentTarget))) onOpen?.(row);
    }
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = place + step;
    if (next < 0 || next >= rows.length) return;
    virtual.scrollToIndex(next);
    frame.current?.querySelector<HTMLElement>(`[data-index="${next}"]`)?.focus();
  };

  const columnCount = table.getVisibleFlatColumns().length + (selection === undefined ? 0 : 1);
  const headers = table.getHeaderGroups()[0]?.headers ?? [];
  const looks = headers.map(({ column }) => column.columnDef.meta);
  const nameAt = Math.max(
    0,
    looks.findIndex((look) => look?.width === undefined),
  );
  if (!loading && rows.length === 0) return empty;
  return (
    <div ref={frame} className={classes.frame} style={{ maxHeight: props.height }}>
      <table
        ref={drawn}
        className={classes.table}
        style={{
          ...sizeOf(
            headers.map(({ id, column }) => resizing.widths[id] ?? column.columnDef.meta?.width),
            selection !== undefined,
            props.clusterOf !== undefined,
          ),
          // The second line begins below the name.
          ["--lead" as string]: `${leadOf(looks.slice(0, nameAt), selection !== undefined)}px`,
        }}
        data-tall={below.length > 0 || undefined}
        aria-label={label}
        aria-rowcount={onEnd === undefined ? rows.length + 1 : -1}
      >
        <thead>
          <tr>
            {selection !== undefined && (
              <th className={classes.check}>
                <SelectAll selection={selection} rows={rows} rowKey={rowKey} />
              </th>
            )}
            {headers.map((header) => (
              <ColumnHead
                key={header.id}
                column={header.id}
                look={header.column.columnDef.meta}
                sort={props.sort}
                onSort={props.onSort}
                resizing={resizing}
              >
                <table.FlexRender header={header} />
              </ColumnHead>
            ))}
          </tr>
        </thead>
        <tbody>
          {loading && rows.length === 0 && <SkeletonRows columns={columnCount} />}
          <Spacer height={shown[0]?.start ?? 0} columns={columnCount} />
          {table.getRowModel().rows.map((row, place) => {
            const index = first + place;
            return (
              <tr
                key={row.id}
                data-index={index}
                aria-rowindex={index + 2}
                tabIndex={onOpen === undefined ? undefined : 0}
                data-opens={onOpen !== undefined || undefined}
                onKeyDown={(event) => walk(event, index)}
                onClick={(event) => {
                  // A link or button in the row does its own work.
                  if ((event.target as Element).closest("a, button, label, input")) return;
                  if (!(opensNewTab(event) && openNewTab(event.currentTarget))) onOpen?.(row.original);
                }}
                onAuxClick={(event) => {
                  const isOwn = (event.target as Element).closest("a, button, label, input") !== null;
                  if (event.button === MIDDLE_BUTTON && !isOwn) openNewTab(event.currentTarget);
                }}
              >
                {selection !== undefined && (
                  <td className={classes.check}>
                    <SelectOne selection={selection} rowKey={row.id} />
                  </td>
                )}
                <RowCluster cluster={props.clusterOf?.(row.original)}>
                  {row.getVisibleCells().map((cell, column) => (
                    <td key={cell.id} data-align={cell.column.columnDef.meta?.align}>
                      <table.FlexRender cell={cell} />
                      {column === nameAt && below.length > 0 && (
                        <div className={classes.second}>
                          {below
                            .flatMap((id) => row.getAllCells().filter((each) => each.column.id === id))
                            .map((each) => (
                              <span key={each.id}>
                                <table.FlexRender cell={each} />
                              </span>
                            ))}
                        </div>
                      )}
                    </td>
                  ))}
                </RowCluster>
              </tr>
            );
          })}
          <Spacer height={virtual.getTotalSize() - (shown.at(-1)?.end ?? 0)} columns={columnCount} />
          {loadingMore && <SkeletonRows columns={columnCount} count={2} />}
        </tbody>
      </table>
    </div>
  );
}

const MIDDLE_BUTTON = 1;

function opensNewTab({ ctrlKey, metaKey }: { ctrlKey: boolean; metaKey: boolean }): boolean {
  return ctrlKey || metaKey;
}

/** Opens the row's own page, to which its first link leads; false where it has none. */
function openNewTab(row: HTMLTableRowElement): boolean {
  const link = row.querySelector<HTMLAnchorElement>("a[href]");
  if (link === null) return false;
  window.open(link.href, "_blank", "noopener");
  return true;
}

const CHECK_WIDTH = 40;

const LEAST_WIDTH = 160;
const LEAST_SHARE = 100;

/**
 * How wide the whole table is. Where the reader gave each column a width it is their sum: the browser would spread what
 * is left among all of them. Where they are all in px but some, these have room for a name; and where one more column
 * says whose the rows are, also those with a share of the width have some.
 */
function sizeOf(
  widths: (number | string | undefined)[],
  selects: boolean,
  ofClusters: boolean,
): CSSProperties {
  const own = widths.map((width) =>
    typeof width === "string" ? (pixels(width) ?? (ofClusters ? LEAST_SHARE : undefined)) : width,
  );
  if (widths.some((width, place) => width !== undefined && own[place] === undefined)) return {};
  const sum = own.reduce<number>((total, width = LEAST_WIDTH) => total + width, selects ? CHECK_WIDTH : 0);
  return widths.every((width) => typeof width === "number") ? { width: sum } : { minWidth: sum };
}

/** How much of a row is before the column of the name. */
function leadOf(before: (ColumnLook | undefined)[], selects: boolean): number {
  const widths = before.map((look) => pixels(look?.width ?? "") ?? 0);
  return widths.reduce((sum, width) => sum + width, selects ? CHECK_WIDTH : 0);
}

function pixels(width: string): number | undefined {
  return width.endsWith("px") ? Number.parseFloat(width) : undefined;
}

interface ColumnHeadProps extends Pick<DataTableProps<object>, "sort" | "onSort"> {
  column: string;
  look: ColumnLook | undefined;
  resizing: Resizing;
  children: ReactNode;
}

function ColumnHead({ column, look = {}, sort, onSort, resizing, children }: ColumnHeadProps) {
  const name = useId();
  return (
    <th
      scope="col"
      data-column={column}
      data-align={look.align}
      style={{ width: resizing.widths[column] ?? look.width }}
      aria-labelledby={name}
      aria-sort={ariaSort(look.sort, sort)}
    >
      <span id={name} className={classes.head}>
        <SortButton by={look.sort} sort={sort} onSort={onSort}>
          {children}
        </SortButton>
      </span>
      <ResizeHandle column={column} describedBy={name} resizing={resizing} />
    </th>
  );
}

function ariaSort(by: string | undefined, sort: Sort | undefined) {
  if (by === undefined || sort === undefined) return undefined;
  return sort === by ? "ascending" : sort === `-${by}` ? "descending" : undefined;
}

interface SortButtonProps extends Pick<DataTableProps<object>, "sort" | "onSort"> {
  by: string | undefined;
  children: ReactNode;
}

/** Sorts by a column: the largest first, then the smallest, then no longer. */
function SortButton({ by, sort, onSort, children }: SortButtonProps) {
  if (by === undefined || onSort === undefined) return children;
  const next = sort === `-${by}` ? by : sort === by ? undefined : `-${by}`;
  return (
    <button type="button" className={classes.sort} onClick={() => onSort(next)}>
      {children}
      {sort === by && <Icon name="up" size={11} />}
      {sort === `-${by}` && <Icon name="down" size={11} />}
    </button>
  );
}

interface SelectAllProps<Row extends object> extends Pick<DataTableProps<Row>, "rows" | "rowKey"> {
  selection: Selection;
}

function SelectAll<Row extends object>({ selection, rows, rowKey }: SelectAllProps<Row>) {
  const all = rows.length > 0 && rows.every((row) => selection.keys.has(rowKey(row)));
  return (
    <input
      type="checkbox"
      className={classes.tick}
      aria-label={t`Select all loaded rows`}
      checked={all}
      ref={(box) => {
        if (box !== null) box.indeterminate = !all && selection.keys.size > 0;
      }}
      onChange={() => selection.onChange(new Set(all ? [] : rows.map(rowKey)))}
    />
  );
}

function SelectOne({ selection, rowKey }: { selection: Selection; rowKey: string }) {
  return (
    <input
      type="checkbox"
      className={classes.tick}
      aria-label={t`Select this row`}
      checked={selection.keys.has(rowKey)}
      onChange={() => {
        const keys = new Set(selection.keys);
        if (!keys.delete(rowKey)) keys.add(rowKey);
        selection.onChange(keys);
      }}
    />
  );
}

/** Stands for the rows that are not in the page. */
function Spacer({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return (
    <tr>
      <td colSpan={columns} style={{ height, padding: 0, border: 0 }} />
    </tr>
  );
}

function SkeletonRows({ columns, count = 8 }: { columns: number; count?: number }) {
  return Array.from({ length: count }, (_, row) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: placeholders have no identity
    <tr key={row}>
      <td colSpan={columns}>
        <Skeleton height={12} width={`${88 - ((row * 17) % 40)}%`} />
      </td>
    </tr>
  ));
}

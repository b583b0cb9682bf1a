/** A list that the server hands out page by page, in a table: the next page is read where the reader comes near the end. */
import { t } from "@lingui/core/macro";
import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo } from "react";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { useFirstRead } from "@/lib/first-read";
import { DataTable, type DataTableProps } from "./data-table";
import { useDistanceFromTop } from "./distance-from-top";

/** Below a list, in px: the edge of the page, and the list's own foot. */
const EDGE = 22;
const FOOT = 42;

export type PagedList<Row> = UseInfiniteQueryResult<InfiniteData<{ results: Row[] }>>;

export interface PagedTableProps<Row extends object>
  extends Pick<
    DataTableProps<Row>,
    | "label"
    | "columns"
    | "rowKey"
    | "onOpen"
    | "selection"
    | "empty"
    | "height"
    | "sort"
    | "onSort"
    | "hidden"
    | "widths"
    | "onWidths"
    | "clusterOf"
  > {
  list: PagedList<Row>;
  /** Above the rows. */
  title?: string;
  aside?: ReactNode;
  /** Below the rows. */
  foot?: ReactNode;
}

/** All rows that are loaded. */
export function useRows<Row>({ data }: PagedList<Row>): Row[] {
  return useMemo(() => data?.pages.flatMap((page) => page.results) ?? [], [data]);
}

export function PagedTable<Row extends object>({
  list,
  title,
  aside,
  foot,
  label,
  ...table
}: PagedTableProps<Row>) {
  const rows = useRows(list);
  const { fetchNextPage } = list;
  const more = useCallback(() => void fetchNextPage(), [fetchNextPage]);
  const first = useFirstRead(list);
  const [above, start] = useDistanceFromTop();
  if (first.error !== null) {
    return (
      <QueryError title={t`${label} cannot be shown`} query={{ error: first.error, refetch: list.refetch }} />
    );
  }
  return (
    <Panel ref={start} flush {...(title === undefined ? {} : { title })} aside={aside}>
      <DataTable
        height={`max(420px, calc(100dvh - ${above + (foot === undefined ? EDGE : EDGE + FOOT)}px))`}
        {...table}
        label={label}
        rows={rows}
        loading={first.waits}
        onEnd={list.hasNextPage ? more : undefined}
        loadingMore={list.isFetchingNextPage}
      />
      {foot}
    </Panel>
  );
}

const MAX_PAGES_RENEWED = 1;

/** How often a list reads itself again. A reader further down keeps the rows that are there. */
export function renewTop(milliseconds: number) {
  return (query: { state: { data: { pages: unknown[] } | undefined } }): number | false =>
    (query.state.data?.pages.length ?? 0) > MAX_PAGES_RENEWED ? false : milliseconds;
}

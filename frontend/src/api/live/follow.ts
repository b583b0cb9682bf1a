/** Keeps lists of workloads, and the pages of single ones, in step with the live stream. */
import { type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { sessionKey } from "@/api/session";
import type { Workload } from "@/api/types";
import { NEWEST_FIRST, readNamed, type WorkloadPages, workloadKeys } from "@/api/workloads";
import { throttle } from "@/lib/throttle";
import { isSeveral } from "@/lib/url/clusters";
import type { LiveConnection } from "./live";
import { hasMoved } from "./live-data";

/**
 * On a busy cluster something moves all the time. The rows of workloads that the stream names are read at once. Whole
 * lists are read again as often as a decision has to be seen soon, and less often where reading them takes long (it shall
 * take a sixth of the time at most) or where it only puts rows in order that are there already.
 */
const MIN_LISTS_PAUSE_MS = 250;
const MAX_LISTS_PAUSE_MS = 3_000;
const ORDER_PAUSE_MS = 1_000;
const PAUSE_PER_READING = 5;

/** Renewal of lists of several clusters, of whose changes no live stream tells. */
export const SEVERAL_RENEW_MS = 5_000;

const MAX_PAGES_FOLLOWED = 3;

/** Beyond, one reading of the whole list costs less. */
const MAX_ROWS_READ = 50;
const BUSY_MS = 100;

/** A reader far down a list is reading it: reading all of it again every few seconds would cost more than it tells. */
function isShort({ state }: Query): boolean {
  const pages = (state.data as { pages?: unknown[] } | undefined)?.pages;
  return pages === undefined || pages.length <= MAX_PAGES_FOLLOWED;
}

/** Reads what the live stream says has changed; and the session when the socket was refused. */
export function useFollowLive(cluster: string, live: LiveConnection): void {
  const queries = useQueryClient();
  useEffect(() => {
    let pauseMs = MIN_LISTS_PAUSE_MS;
    const readLists = async () => {
      const started = performance.now();
      await queries.invalidateQueries({ queryKey: workloadKeys.all(cluster), predicate: isShort });
      const wanted = PAUSE_PER_READING * (performance.now() - started);
      pauseMs = Math.min(MAX_LISTS_PAUSE_MS, Math.max(MIN_LISTS_PAUSE_MS, wanted));
    };
    const read = () => void readLists();
    const soon = throttle(read, () => pauseMs);
    if (isSeveral(cluster)) {
      const timer = window.setInterval(soon.ask, SEVERAL_RENEW_MS);
      return () => {
        window.clearInterval(timer);
        soon.stop();
      };
    }
    const later = throttle(read, () => Math.max(pauseMs, ORDER_PAUSE_MS));
    const rows = rowReader(queries, cluster, (complete) => (complete ? later : soon).ask());
    let seen = live.getState().data;
    const unsubscribe = live.subscribe(() => {
      const { data, status } = live.getState();
      if (status === "refused") void queries.invalidateQueries({ queryKey: sessionKey });
      const { names, more } = live.takeChanged();
      const moved = data !== null && hasMoved(seen, data);
      seen = data;
      if (more) soon.ask();
      else if (names.size > 0) rows.read(names);
      else if (moved) later.ask();
    });
    return () => {
      unsubscribe();
      soon.stop();
      later.stop();
      rows.stop();
    };
  }, [cluster, live, queries]);
}

/** Reads named rows, one reading at a time; says after each whether all of them have their place in each list. */
function rowReader(queries: QueryClient, cluster: string, onRead: (complete: boolean) => void) {
  let waiting = new Set<string>();
  let reading = false;
  let stopped = false;
  const run = async () => {
    reading = true;
    while (waiting.size > 0 && !stopped) {
      const names = waiting;
      waiting = new Set();
      if (names.size > MAX_ROWS_READ) onRead(false);
      else onRead(await renewRows(queries, cluster, names).catch(() => false));
    }
    reading = false;
  };
  return {
    read: (names: ReadonlySet<string>) => {
      for (const name of names) waiting.add(name);
      if (!reading) void run();
    },
    stop: () => {
      stopped = true;
    },
  };
}

async function renewRows(
  queries: QueryClient,
  cluster: string,
  names: ReadonlySet<string>,
): Promise<boolean> {
  void queries.invalidateQueries({
    queryKey: [...workloadKeys.all(cluster), "detail"],
    predicate: ({ queryKey }) => names.has(`${queryKey[3]}/${queryKey[4]}`),
  });
  const lists = queries
    .getQueryCache()
    .findAll({ queryKey: [...workloadKeys.all(cluster), "list"], type: "active" });
  const complete = await Promise.all(lists.map((list) => renewRowsOf(queries, list, names)));
  return complete.every(Boolean);
}

async function renewRowsOf(queries: QueryClient, list: Query, names: ReadonlySet<string>): Promise<boolean> {
  const rows = await readNamed(list.queryKey, [...names]);
  // A page that is being read would be added to the pages as they were before.
  while (list.state.fetchStatus === "fetching" && !isShort(list)) {
    await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
  }
  const known = list.state.data as WorkloadPages | undefined;
  if (known === undefined) return false;
  const newestFirst = list.queryKey[4] === NEWEST_FIRST;
  const { pages, complete } = withRows(known.pages, names, rows, newestFirst);
  queries.setQueryData<WorkloadPages>(list.queryKey, { ...known, pages });
  return complete;
}

/**
 * The pages of a list with these rows as what its named workloads are now: replaced where they stand, left out where the
 * list has them no longer, and put where they belong if the newest are first. In another order new rows cannot be placed,
 * and it is not `complete`.
 */
export function withRows<Page extends { results: Workload[]; next: string | null }>(
  pages: readonly Page[],
  names: ReadonlySet<string>,
  rows: readonly Workload[],
  newestFirst: boolean,
): { pages: Page[]; complete: boolean } {
  const fresh = new Map(rows.map((row) => [row.uid, row]));
  const renewed = pages.map((page) => {
    if (!page.results.some((row) => names.has(keyOf(row)))) return page;
    const results = page.results.flatMap((row) => {
      if (!names.has(keyOf(row))) return [row];
      const now = fresh.get(row.uid);
      fresh.delete(row.uid);
      return now === undefined ? [] : [now];
    });
    return { ...page, results };
  });
  if (!newestFirst) return { pages: renewed, complete: fresh.size === 0 };
  for (const row of fresh.values()) insert(renewed, row);
  return { pages: renewed, complete: true };
}

/** In the order of ids, the largest first. A row behind the last that is loaded comes with its page. */
function insert<Page extends { results: Workload[]; next: string | null }>(
  pages: Page[],
  row: Workload,
): void {
  const place = pages.findIndex(
    ({ results, next }) => next === null || results.some((each) => each.id < row.id),
  );
  const page = pages[place];
  if (page === undefined) return;
  const before = page.results.filter((each) => each.id > row.id);
  pages[place] = { ...page, results: [...before, row, ...page.results.slice(before.length)] };
}

function keyOf({ namespace, name }: Workload): string {
  return `${namespace}/${name}`;
}

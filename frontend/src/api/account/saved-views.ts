/** The views of lists that the user saved; they are in the account, and so in every browser. */
import { queryOptions } from "@tanstack/react-query";
import { ApiError, answer, api } from "@/api/client";
import type { components } from "@/api/schema.gen";
import { dropStoredViews, readStoredViews } from "@/lib/list/stored-views";
import { ifUnchanged, useOwnChange } from "./own-objects";

export type SavedView = components["schemas"]["SavedView"];

const KEY = ["saved-views", "workloads"] as const;
const PAGE = "workloads";

async function readViews(signal: AbortSignal): Promise<SavedView[]> {
  const params = { query: { page: PAGE, limit: 1000 } } as const;
  return (await answer(api.GET("/api/v1/saved-views/", { params, signal }))).results;
}

const isThereAlready = (error: unknown) => error instanceof ApiError && error.reason === "AlreadyExists";

/**
 * Saves in the account what earlier versions saved in this browser. What has the same name in the account stays as it is
 * there. Those that are refused stay in the browser.
 */
async function takeOver(store: Storage): Promise<boolean> {
  const stored = readStoredViews(store);
  const taken: string[] = [];
  for (const { name, search } of stored) {
    try {
      await answer(api.POST("/api/v1/saved-views/", { body: { page: PAGE, name, search } }));
      taken.push(name);
    } catch (error) {
      if (isThereAlready(error)) taken.push(name);
      else if (!(error instanceof ApiError) || error.status >= 500 || error.status === 0) break;
    }
  }
  dropStoredViews(store, taken);
  return taken.length > 0;
}

export function savedViewsQuery() {
  return queryOptions({
    queryKey: KEY,
    queryFn: async ({ signal }) => {
      const views = await readViews(signal);
      return (await takeOver(window.localStorage)) ? await readViews(signal) : views;
    },
  });
}

export interface ViewToSave {
  name: string;
  search: Record<string, string>;
  /** The view of that name, as the user sees it; it is replaced unless it has changed since. */
  before: SavedView | undefined;
}

export function useSaveView() {
  return useOwnChange(KEY, ({ name, search, before }: ViewToSave) =>
    before === undefined
      ? answer(api.POST("/api/v1/saved-views/", { body: { page: PAGE, name, search } }))
      : answer(
          api.PATCH("/api/v1/saved-views/{view_id}/", {
            params: { path: { view_id: before.id }, header: ifUnchanged(before) },
            body: { search },
          }),
        ),
  );
}

export function useDeleteView() {
  return useOwnChange(KEY, (view: SavedView) =>
    api.DELETE("/api/v1/saved-views/{view_id}/", {
      params: { path: { view_id: view.id }, header: ifUnchanged(view) },
    }),
  );
}

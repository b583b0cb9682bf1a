/** Views that the reader has saved under a name, in the browser. */

export interface SavedView {
  name: string;
  /** The filters and the look of the list, as they stand in the URL. */
  search: Record<string, string>;
}

type Store = Pick<Storage, "getItem" | "setItem">;

const KEY = "kueueweb.views";
const MAX_VIEWS = 50;

function isView(value: unknown): value is SavedView {
  if (typeof value !== "object" || value === null) return false;
  const { name, search } = value as Partial<SavedView>;
  return typeof name === "string" && typeof search === "object" && search !== null;
}

export function readViews(store: Store): SavedView[] {
  try {
    const found: unknown = JSON.parse(store.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(isView) : [];
  } catch {
    return []; // Another program wrote there, or the browser keeps nothing.
  }
}

/** Keeps the view, in the place of one with the same name. */
export function saveView(store: Store, view: SavedView): SavedView[] {
  const others = readViews(store).filter(({ name }) => name !== view.name);
  return write(
    store,
    [...others, view].slice(-MAX_VIEWS).sort((a, b) => a.name.localeCompare(b.name)),
  );
}

export function forgetView(store: Store, name: string): SavedView[] {
  return write(
    store,
    readViews(store).filter((view) => view.name !== name),
  );
}

function write(store: Store, views: SavedView[]): SavedView[] {
  store.setItem(KEY, JSON.stringify(views));
  return views;
}

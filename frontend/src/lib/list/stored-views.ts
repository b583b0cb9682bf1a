/** Views that an earlier version saved in the browser; the account takes them over. */

export interface StoredView {
  name: string;
  /** The filters and the look of the list, as they stand in the URL. */
  search: Record<string, string>;
}

type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

const KEY = "kueueweb.views";

function isView(value: unknown): value is StoredView {
  if (typeof value !== "object" || value === null) return false;
  const { name, search } = value as Partial<StoredView>;
  if (typeof name !== "string" || typeof search !== "object" || search === null) return false;
  return Object.values(search).every((text) => typeof text === "string");
}

export function readStoredViews(store: Store): StoredView[] {
  try {
    const found: unknown = JSON.parse(store.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(isView) : [];
  } catch {
    return []; // Another program wrote there, or the browser keeps nothing.
  }
}

export function dropStoredViews(store: Store, names: readonly string[]): void {
  if (names.length === 0) return;
  const left = readStoredViews(store).filter(({ name }) => !names.includes(name));
  if (left.length === 0) store.removeItem(KEY);
  else store.setItem(KEY, JSON.stringify(left));
}

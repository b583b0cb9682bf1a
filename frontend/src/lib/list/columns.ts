/** Columns that the reader added to a list, and how wide its columns are, as both stand in the URL. */

/** The number of columns for which the table has room; the API gives the annotations of more. */
export const MAX_ADDED = 8;

const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;
const OWN = ["local_queue", "priority_class", "submitted_by", "kind"] as const;

export type OwnColumn = (typeof OWN)[number];
/** A field that rows have, or the value of a label or an annotation. */
export type AddedColumn = OwnColumn | `label:${string}` | `annotation:${string}`;

export const OWN_COLUMNS: readonly OwnColumn[] = OWN;

export function isKey(text: string): boolean {
  return KEY.test(text);
}

function isAdded(text: string): text is AddedColumn {
  const [kind = "", key = ""] = text.split(/:(.*)/s);
  return OWN.some((own) => own === text) || ((kind === "label" || kind === "annotation") && isKey(key));
}

/** Each once; what is none is left out. */
export function parseColumns(text = ""): AddedColumn[] {
  return [...new Set(text.split(",").filter(isAdded))].slice(0, MAX_ADDED);
}

/** The keys of the annotations among the columns. */
export function annotationsOf(columns: readonly AddedColumn[]): string[] {
  return columns.flatMap((column) =>
    column.startsWith("annotation:") ? [column.slice("annotation:".length)] : [],
  );
}

/** "name~412,label:team~120": in px. */
export function parseWidths(text = ""): Record<string, number> {
  return Object.fromEntries(
    text.split(",").flatMap((entry) => {
      const [column = "", width = ""] = entry.split("~");
      return column !== "" && /^\d{2,4}$/.test(width) ? [[column, Number(width)]] : [];
    }),
  );
}

export function formatWidths(widths: Readonly<Record<string, number>>): string {
  return Object.entries(widths)
    .map(([column, width]) => `${column}~${width}`)
    .join(",");
}

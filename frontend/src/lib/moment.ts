/** The moment of the past that the tab shows, for everything that asks the server or counts from now. */

let moment: string | null = null;

/** Set by the page before its parts render: null for the present. */
export function showMoment(at: string | null): void {
  moment = at;
}

/** In ISO 8601; null while the present is shown. */
export function shownMoment(): string | null {
  return moment;
}

/** The time of what is shown, in ms since the epoch: now, or the moment. */
export function shownMs(): number {
  return moment === null ? Date.now() : Date.parse(moment);
}

/** The moment of a URL's search, as the API takes it; undefined for the present. */
export function parseMoment(search: Record<string, unknown>): { at?: string } {
  const ms = typeof search.at === "string" ? Date.parse(search.at) : Number.NaN;
  return Number.isNaN(ms) ? {} : { at: new Date(ms).toISOString() };
}

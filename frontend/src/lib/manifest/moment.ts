/** Moments in manifests are RFC 3339 in UTC; a form shows them in the reader's zone, as `datetime-local` writes them. */

/** "2026-12-01T08:00:00Z" */
export function writtenMoment(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`;
}

/** "2026-12-01T09:00", or an empty text for what is no moment. */
export function shownMoment(written: string): string {
  const at = new Date(written);
  if (written === "" || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

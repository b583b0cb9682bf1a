/** Whether a change of a page's search is typing, which replaces the entry of the browser's history, or a step back to. */
export function isTyping<Search extends object>(
  before: Search,
  after: Search,
  typed: readonly (keyof Search)[],
): boolean {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof Search>;
  const changed = [...keys].filter((key) => before[key] !== after[key]);
  return changed.every((key) => typed.includes(key));
}

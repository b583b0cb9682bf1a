/** Texts in a URL's search. */

/** The names that are not empty: two equal views have equal keys. */
export function parseTexts<Name extends string>(
  search: Record<string, unknown>,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const texts: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = search[name];
    // The router reads ?search=42 as a number.
    const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : "";
    if (text !== "") texts[name] = text;
  }
  return texts;
}

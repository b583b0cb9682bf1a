/** Label selectors as the API takes them: requirements with commas between them, which must all hold. */
import { isKey } from "./columns";

export const MATCHES = ["has", "lacks", "is", "is-not", "starts", "contains", "one-of", "none-of"] as const;
export type Match = (typeof MATCHES)[number];

/** Most matches compare with a value. */
export function takesValue(match: Match): boolean {
  return match !== "has" && match !== "lacks";
}

const VALUE = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;

function isValue(match: Match, value: string): boolean {
  if (match === "starts" || match === "contains") return /^[-\w.]{1,63}$/.test(value);
  if (match === "one-of" || match === "none-of") {
    return value.split(",").every((each) => VALUE.test(each.trim()));
  }
  return VALUE.test(value);
}

/** One requirement; undefined where no label can be so. */
export function requirement(key: string, match: Match, value: string): string | undefined {
  if (!isKey(key) || (takesValue(match) && !isValue(match, value))) return undefined;
  const texts: Record<Match, string> = {
    has: key,
    lacks: `!${key}`,
    is: `${key}=${value}`,
    "is-not": `${key}!=${value}`,
    starts: `${key}^=${value}`,
    contains: `${key}*=${value}`,
    "one-of": `${key} in (${value})`,
    "none-of": `${key} notin (${value})`,
  };
  return texts[match];
}

export function splitSelector(selector = ""): string[] {
  return selector
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** With one requirement more, each once. */
export function joinSelector(selector: string | undefined, more: string): string {
  return [...new Set([...splitSelector(selector), more])].join(",");
}

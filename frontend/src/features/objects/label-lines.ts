/** Labels as lines of a form, `key=value`. */
import { isFields, type Value } from "@/lib/manifest/object";

export function labelLines(value: Value | undefined): string[] {
  return isFields(value)
    ? Object.entries(value).map(([key, text]) => (text === "" ? key : `${key}=${text}`))
    : [];
}

export function labelsOf(lines: readonly string[]): Value {
  return Object.fromEntries(
    lines.map((line) => {
      const [key = "", ...rest] = line.split("=");
      return [key, rest.join("=")];
    }),
  );
}

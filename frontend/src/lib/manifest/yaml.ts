/** Writes plain data as YAML, in blocks. What YAML says is the server's to read: it has one reader for all its doors. */
import { isFields, type Value } from "./object.ts";

/** Texts that every reader of YAML takes for the text that it is. */
const PLAIN = /^[A-Za-z_/][\w./@%+-]*(?::[\w./@%+-]+)*$/;
const QUANTITY = /^\d+(?:\.\d+)?(?:m|[kMGTP]|[KMGTPE]i)$/;
const OTHER_THAN_TEXT = /^(?:true|false|yes|no|on|off|null|y|n)$/i;

function scalar(value: string | number | boolean | null): string {
  if (typeof value !== "string") return String(value);
  const isPlain = (PLAIN.test(value) && !OTHER_THAN_TEXT.test(value)) || QUANTITY.test(value);
  return isPlain ? value : JSON.stringify(value);
}

function isEmpty(value: Value): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** The lines of a value; `[]` and `{}` are one. */
function lines(value: Value): string[] {
  if (isEmpty(value)) return [Array.isArray(value) ? "[]" : "{}"];
  if (Array.isArray(value)) {
    return value.flatMap((item) => lines(item).map((line, at) => (at === 0 ? `- ${line}` : `  ${line}`)));
  }
  if (!isFields(value)) return [scalar(value)];
  return Object.entries(value).flatMap(([key, field]) => {
    const name = `${scalar(key)}:`;
    const inner = lines(field);
    const isBlock = typeof field === "object" && field !== null && !isEmpty(field);
    return isBlock ? [name, ...inner.map((line) => `  ${line}`)] : [`${name} ${inner[0]}`];
  });
}

export function toYaml(value: Value): string {
  return `${lines(value).join("\n")}\n`;
}

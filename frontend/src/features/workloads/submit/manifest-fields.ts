/**
 * The fields of the form, read from a manifest's text and written back into it. Lines are edited where they stand, so that
 * comments and everything that the form does not know stay. Of several containers the first is meant.
 */

export const FIELDS = [
  "image",
  "command",
  "replicas",
  "cpu",
  "memory",
  "gpus",
  "gpuMemory",
  "gpuCores",
  "priorityClass",
] as const;

export type FieldName = (typeof FIELDS)[number];

/** The value in the text; absent: it has none. */
export type FormValues = Partial<Record<FieldName, string>>;

/** The keys of a field, the first of which is read; all that are there are written. */
const KEYS: Record<FieldName, readonly string[]> = {
  image: ["image"],
  command: ["command"],
  replicas: ["parallelism", "completions", "replicas"],
  cpu: ["cpu"],
  memory: ["memory"],
  gpus: ["nvidia.com/gpu"],
  gpuMemory: ["nvidia.com/gpumem"],
  gpuCores: ["nvidia.com/gpucores"],
  priorityClass: ["kueue.x-k8s.io/priority-class"],
};

/** The block that a field's line is added to where there is none yet. */
const BLOCKS: Partial<Record<FieldName, "requests" | "limits">> = {
  cpu: "requests",
  memory: "requests",
  gpus: "limits",
  gpuMemory: "limits",
  gpuCores: "limits",
};

const QUEUE_KEY = "kueue.x-k8s.io/queue-name";

/** `key: value`, with what stands before it. */
function lineOf(key: string): RegExp {
  const escaped = key.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  return new RegExp(`^(\\s*(?:- )?)(["']?)${escaped}\\2:[ \\t]*(.*?)[ \\t]*$`);
}

function find(lines: readonly string[], key: string): { at: number; lead: string; value: string } | null {
  const pattern = lineOf(key);
  for (const [at, line] of lines.entries()) {
    const match = pattern.exec(line);
    if (match !== null) return { at, lead: match[1] ?? "", value: match[3] ?? "" };
  }
  return null;
}

function unquoted(value: string): string {
  const text = value.replace(/\s+#.*$/, "");
  const quoted = /^(["'])(.*)\1$/.exec(text);
  return quoted === null ? text : (quoted[2] ?? "");
}

/** A plain text where YAML would read the same text, quotes where it would not. */
function quoted(value: string): string {
  const isPlain =
    /^[A-Za-z/][\w./:@-]*$/.test(value) && !/^(true|false|yes|no|on|off|null|y|n)$/i.test(value);
  const isQuantity = /^\d+(?:\.\d+)?(?:m|[KMGTPE]i?)$/.test(value);
  return isPlain || isQuantity ? value : JSON.stringify(value);
}

/** A command as people type it: words between spaces, quotes around what belongs together. */
export function wordsOf(command: string): string[] {
  return [...command.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(
    (match) => match[1]?.replace(/\\(.)/g, "$1") ?? match[2] ?? match[3] ?? "",
  );
}

function typed(words: readonly string[]): string {
  return words.map((word) => (/^[^\s"']+$/.test(word) ? word : JSON.stringify(word))).join(" ");
}

function readCommand(value: string): string | undefined {
  try {
    const words: unknown = JSON.parse(value);
    return Array.isArray(words) ? typed(words.map(String)) : undefined;
  } catch {
    return undefined;
  }
}

/** The fields of a manifest that the form shows. */
export function readFields(text: string): FormValues {
  const lines = text.split("\n");
  const found: FormValues = {};
  for (const field of FIELDS) {
    const line = KEYS[field].map((key) => find(lines, key)).find((each) => each !== null);
    if (line === undefined || line === null || line.value === "") continue;
    const value = field === "command" ? readCommand(line.value) : unquoted(line.value);
    if (value !== undefined) found[field] = value;
  }
  return found;
}

/** Whether the form can write the field: it has a line, or a place for one. */
export function canWrite(text: string, field: FieldName): boolean {
  return writeField(text, field, "1") !== text || readFields(text)[field] === "1";
}

const indent = (lead: string, more = 0) => " ".repeat(lead.length + more);

/** The text with the field set; an empty value takes its line away. */
export function writeField(text: string, field: FieldName, value: string): string {
  const lines = text.split("\n");
  const shown = field === "command" ? JSON.stringify(wordsOf(value)) : written(field, value);
  const present = KEYS[field]
    .map((key) => ({ key, line: find(lines, key) }))
    .filter(({ line }) => line !== null);
  // A command over several lines is not ours to cut.
  if (field === "command" && present[0]?.line?.value === "") return text;
  if (present.length > 0) {
    for (const { key, line } of present) if (line !== null) lines[line.at] = `${line.lead}${key}: ${shown}`;
    if (value !== "") return lines.join("\n");
    const gone = new Set(present.map(({ line }) => line?.at));
    return lines.filter((_, at) => !gone.has(at)).join("\n");
  }
  if (value === "") return text;
  return insert(lines, field, shown)?.join("\n") ?? text;
}

function written(field: FieldName, value: string): string {
  if (field === "replicas") return value;
  return BLOCKS[field] === undefined ? quoted(value) : /^\d+$/.test(value) ? `"${value}"` : quoted(value);
}

function insert(lines: string[], field: FieldName, shown: string): string[] | null {
  const line = `${KEYS[field][0]}: ${shown}`;
  if (field === "priorityClass") return insertAfter(lines, QUEUE_KEY, (lead) => [`${indent(lead)}${line}`]);
  if (field === "command") return insertAfter(lines, "image", (lead) => [`${indent(lead)}${line}`]);
  const block = BLOCKS[field];
  if (block === undefined) return null;
  return (
    insertAfter(lines, block, (lead) => [`${indent(lead, 2)}${line}`]) ??
    insertAfter(lines, "resources", (lead) => [`${indent(lead, 2)}${block}:`, `${indent(lead, 4)}${line}`]) ??
    insertAfter(lines, "image", (lead) => [
      `${indent(lead)}resources:`,
      `${indent(lead, 2)}${block}:`,
      `${indent(lead, 4)}${line}`,
    ])
  );
}

function insertAfter(lines: string[], key: string, make: (lead: string) => string[]): string[] | null {
  const found = find(lines, key);
  if (found === null || (found.value !== "" && found.value.startsWith("{"))) return null;
  return lines.toSpliced(found.at + 1, 0, ...make(found.lead));
}

/** The text for another LocalQueue. */
export function writeQueue(text: string, queue: { namespace: string; name: string }): string {
  const lines = text.split("\n");
  const set = (key: string, value: string) =>
    lines.forEach((line, at) => {
      const match = lineOf(key).exec(line);
      if (match !== null) lines[at] = `${match[1]}${key}: ${value}`;
    });
  set("namespace", queue.namespace);
  set(QUEUE_KEY, queue.name);
  return lines.join("\n");
}

/** The name of the object: its own, or the beginning of a generated one, which ends in a hyphen. */
export interface ManifestName {
  own?: string;
  generated?: string;
}

const NAME = /^( {2})(["']?)(name|generateName)\2:[ \t]*(.*?)[ \t]*$/;

/** The place of the object's name; null in a text of several objects, and in one that is not written as templates are. */
function nameLine(lines: readonly string[]): number | null {
  const found = lines.flatMap((line, at) => (NAME.test(line) && isOfMetadata(lines, at) ? [at] : []));
  return found.length === 1 ? (found[0] ?? null) : null;
}

function isOfMetadata(lines: readonly string[], at: number): boolean {
  const above = lines.slice(0, at).findLast((line) => /^\S/.test(line) && !line.startsWith("#"));
  return above !== undefined && /^(["']?)metadata\1:[ \t]*$/.test(above);
}

/** The name that the text gives its object; null where the form cannot write it. */
export function readName(text: string): ManifestName | null {
  const lines = text.split("\n");
  const at = nameLine(lines);
  const match = at === null ? null : NAME.exec(lines[at] ?? "");
  if (match === null) return null;
  const value = unquoted(match[4] ?? "");
  return match[3] === "name" ? { own: value } : { generated: value };
}

/** The text with this name, or with a generated one that begins with `generated` for an empty name. */
export function writeName(text: string, name: string, generated: string): string {
  const lines = text.split("\n");
  const at = nameLine(lines);
  if (at === null) return text;
  lines[at] = name === "" ? `  generateName: ${quoted(generated)}` : `  name: ${quoted(name)}`;
  return lines.join("\n");
}

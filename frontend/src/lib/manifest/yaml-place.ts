/**
 * Where a position in a YAML text is: in which field of which object. The text may be unfinished, so indentation alone
 * is read; what stands in braces and brackets of one line belongs to its key.
 */
import type { Path } from "./object.ts";

/** An object in the text, by the fields that name its kind. */
export interface ObjectHead {
  apiVersion: string;
  kind: string;
}

export interface YamlPlace {
  /** Null outside of an object that names its kind. */
  head: ObjectHead | null;
  /** From the object to the field; the last key is the text at the position, which may be unfinished. */
  path: Path;
  part: "key" | "value";
  /** The bounds of the key or value around the position. */
  from: number;
  to: number;
  /** The keys that the mapping has already. */
  siblings: readonly string[];
}

interface Level {
  column: number;
  key: string | number;
}

interface Pair {
  /** The column of the key. */
  column: number;
  key: string;
  value: string;
  /** Offsets in the line. */
  keyEnd: number;
  valueStart: number;
}

const PAIR = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"'[\]{},&*!|>%@`-][^#]*?|-[^\s#][^#]*?)\s*:(?:\s+|$)/;
const BLOCK_TEXT = /^[|>][+-]?\d?\s*(?:#.*)?$/;
const DOCUMENT_END = /^(?:---|\.\.\.)(?:\s|$)/;

const unquoted = (text: string) => /^(["'])(.*)\1$/.exec(text)?.[2] ?? text;

const scalarOf = (text: string) => unquoted(text.replace(/\s+#.*$/, "").trim());

const pathKey = (path: Path) => JSON.stringify(path);

/** The levels that stay open for an entry at a column: a key ends lists at its own column, an item does not. */
function closed(levels: Level[], column: number, isItem: boolean): void {
  for (let top = levels.at(-1); top !== undefined; top = levels.at(-1)) {
    if (top.column < column || (isItem && top.column === column)) return;
    levels.pop();
  }
}

/** Enters the items that a line begins, and returns where the rest of the line starts. */
function enterItems(levels: Level[], line: string, start: number): number {
  let column = start;
  for (let item = /^-(?:\s+|$)/.exec(line.slice(column)); item !== null; ) {
    closed(levels, column, true);
    const top = levels.at(-1);
    if (top?.column === column && typeof top.key === "number") top.key += 1;
    else levels.push({ column, key: 0 });
    column += item[0].length;
    item = /^-(?:\s+|$)/.exec(line.slice(column));
  }
  return column;
}

function pairAt(line: string, column: number): Pair | null {
  const found = PAIR.exec(line.slice(column));
  if (found === null) return null;
  const [whole, key = ""] = found;
  const valueStart = column + whole.length;
  return {
    column,
    key: unquoted(key),
    value: line.slice(valueStart),
    keyEnd: column + key.length,
    valueStart,
  };
}

interface Found {
  path: Path;
  part: "key" | "value";
  from: number;
  to: number;
}

/** Reads the lines of one document. */
class Reader {
  private readonly levels: Level[] = [];
  private textBelow: number | null = null;
  private readonly heads = new Map<string, Partial<ObjectHead>>();
  private readonly keys = new Map<string, string[]>();

  private get path(): (string | number)[] {
    return this.levels.map(({ key }) => key);
  }

  /** The field at a position of the line, if it is asked for and there is one. */
  line(line: string, position: number | null): Found | null {
    const indent = line.length - line.trimStart().length;
    const isBlank = line.trim() === "";
    if (this.textBelow !== null) {
      if (isBlank || indent > this.textBelow) return null;
      this.textBelow = null;
    }
    if (isBlank) return position === null ? null : this.unfinished(line, position, position);
    if (line[indent] === "#") return null;
    const start = enterItems(this.levels, line, indent);
    const pair = pairAt(line, start);
    if (pair === null)
      return position === null || position < start ? null : this.unfinished(line, start, position);
    closed(this.levels, pair.column, false);
    this.note(pair);
    this.levels.push({ column: pair.column, key: pair.key });
    if (BLOCK_TEXT.test(pair.value)) this.textBelow = pair.column;
    if (position === null || position < start) return null;
    const isKey = position <= pair.keyEnd;
    const end = pair.valueStart + pair.value.replace(/\s+(?:#.*)?$/, "").length;
    return {
      path: this.path,
      part: isKey ? "key" : "value",
      from: isKey ? pair.column : Math.min(pair.valueStart, position),
      to: isKey ? pair.keyEnd : Math.max(end, position),
    };
  }

  /** A key of which there is only a beginning. */
  private unfinished(line: string, start: number, position: number): Found {
    const levels = this.levels.slice();
    closed(levels, start, false);
    const typed = line.slice(start).trimEnd();
    return {
      path: [...levels.map(({ key }) => key), typed],
      part: "key",
      from: start,
      to: Math.max(start + typed.length, position),
    };
  }

  private note({ key, value }: Pair): void {
    const mapping = pathKey(this.path);
    this.keys.set(mapping, [...(this.keys.get(mapping) ?? []), key]);
    if (key === "apiVersion" || key === "kind")
      this.heads.set(mapping, { ...this.heads.get(mapping), [key]: scalarOf(value) });
  }

  siblingsOf(path: Path): readonly string[] {
    return this.keys.get(pathKey(path.slice(0, -1))) ?? [];
  }

  /** The innermost object with a kind around a path, and where it begins. */
  objectOf(path: Path): { head: ObjectHead; depth: number } | null {
    for (let depth = path.length - 1; depth >= 0; depth -= 1) {
      const { apiVersion, kind } = this.heads.get(pathKey(path.slice(0, depth))) ?? {};
      if (apiVersion && kind) return { head: { apiVersion, kind }, depth };
    }
    return null;
  }
}

/** The field at an offset of the text; null in a comment, in a text of several lines and between documents. */
export function placeAt(text: string, offset: number): YamlPlace | null {
  const reader = { now: new Reader() };
  let found: { at: Found; start: number } | null = null;
  let start = 0;
  for (const line of text.split("\n")) {
    const isHere = found === null && offset >= start && offset <= start + line.length;
    if (DOCUMENT_END.test(line)) {
      if (found !== null) break;
      reader.now = new Reader();
    } else {
      const at = reader.now.line(line, isHere ? offset - start : null);
      if (at !== null) found = { at, start };
    }
    if (isHere && found === null) return null;
    start += line.length + 1;
  }
  if (found === null) return null;
  const { at } = found;
  const object = reader.now.objectOf(at.path);
  return {
    head: object?.head ?? null,
    path: at.path.slice(object?.depth ?? 0),
    part: at.part,
    from: found.start + at.from,
    to: found.start + at.to,
    siblings: reader.now.siblingsOf(at.path),
  };
}

/** The versions of the objects in a text, each once. */
export function apiVersionsIn(text: string): string[] {
  const found = [...text.matchAll(/^[\s-]*apiVersion:[ \t]*(\S+)/gm)].map(([, version = ""]) =>
    unquoted(version),
  );
  return [...new Set(found)];
}

const INDENT = 2;

/** The column at which the line below begins: that of the entry above, or further in where it opens a block. */
export function indentBelow(above: string, next: string): number {
  const [outer = ""] = /^(?: *- +)*(?: *- *$)?\s*/.exec(above) ?? [];
  const opens = /:\s*(?:[|>][+-]?\d?)?\s*(?:#.*)?$/.test(above);
  const column = outer.length + (opens ? INDENT : 0);
  const present = next.trim() === "" ? 0 : next.length - next.trimStart().length;
  return opens && present > outer.length ? present : column;
}

/** Differences between two versions of an object, and one author's changes carried over to another's. */
import { isFields, type Path, type Value } from "./object";

export interface Change {
  /** Items of a list that have names are found by them, wherever they stand. */
  path: Path;
  /** Undefined: not there. */
  before: Value | undefined;
  after: Value | undefined;
}

function same(a: Value | undefined, b: Value | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, at) => same(item, b[at]));
  if (!isFields(a) || !isFields(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}

/** The items of a list by their names; null where some have none, or two the same. */
function byName(value: Value | undefined): Map<string, Value> | null {
  if (!Array.isArray(value)) return null;
  const found = new Map<string, Value>();
  for (const item of value) {
    if (!isFields(item) || typeof item.name !== "string" || found.has(item.name)) return null;
    found.set(item.name, item);
  }
  return found;
}

/** Both as parts that belong to each other by key; null where they are to be compared as wholes. */
function parts(
  a: Value | undefined,
  b: Value | undefined,
): [Map<string | number, Value>, Map<string | number, Value>] | null {
  if (isFields(a) && isFields(b)) return [new Map(Object.entries(a)), new Map(Object.entries(b))];
  if (!Array.isArray(a) || !Array.isArray(b)) return null;
  const [named, other] = [byName(a), byName(b)];
  if (named !== null && other !== null) return [named, other];
  const isListOfObjects = [...a, ...b].every((item) => isFields(item));
  return isListOfObjects ? [new Map(a.entries()), new Map(b.entries())] : null;
}

export function changes(before: Value | undefined, after: Value | undefined, path: Path = []): Change[] {
  if (same(before, after)) return [];
  const inside = parts(before, after);
  if (inside === null) return [{ path, before, after }];
  const [old, now] = inside;
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((key) =>
    changes(old.get(key), now.get(key), [...path, key]),
  );
}

/** The changes of `theirs` that `ours` change too, to another value. */
export function conflicts(theirs: readonly Change[], ours: readonly Change[]): Change[] {
  const within = (inner: Path, outer: Path) => outer.every((key, at) => inner[at] === key);
  return theirs.filter((their) =>
    ours.some(
      (our) =>
        (within(their.path, our.path) || within(our.path, their.path)) &&
        !(their.path.length === our.path.length && same(their.after, our.after)),
    ),
  );
}

/** `now` with what leads from `base` to `mine`; where both changed the same, mine. */
export function carriedOver(
  base: Value | undefined,
  mine: Value | undefined,
  now: Value | undefined,
): Value | undefined {
  if (same(base, mine)) return now;
  if (same(base, now)) return mine;
  const inside = parts(mine, now);
  if (inside === null) return mine;
  const [ours, theirs] = inside;
  const old: ReadonlyMap<string | number, Value> = parts(base, now)?.[0] ?? new Map();
  const kept = [...new Set([...ours.keys(), ...theirs.keys()])].flatMap((key) => {
    const value = carriedOver(old.get(key), ours.get(key), theirs.get(key));
    return value === undefined ? [] : [[key, value] as const];
  });
  return Array.isArray(mine) ? kept.map(([, value]) => value) : Object.fromEntries(kept);
}

/** `spec.resourceGroups[0].flavors[a100].resources[cpu].nominalQuota` */
export function pathText(path: Path, whole: Value | undefined): string {
  let text = "";
  let inner = whole;
  for (const key of path) {
    const isItem = Array.isArray(inner) || typeof key === "number";
    text += isItem ? `[${key}]` : text === "" ? key : `.${key}`;
    inner = Array.isArray(inner)
      ? (byName(inner)?.get(String(key)) ?? inner[Number(key)])
      : isFields(inner)
        ? inner[key]
        : undefined;
  }
  return text;
}

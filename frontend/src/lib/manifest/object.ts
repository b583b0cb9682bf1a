/** Kubernetes objects as plain data, and what of them an author writes. */

export type Value = string | number | boolean | null | Value[] | { [key: string]: Value };
export type Fields = { [key: string]: Value };

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: Fields;
  [key: string]: Value;
}

export function isFields(value: Value | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** "spec", "stopPolicy" or "resourceGroups", 0. */
export type Path = readonly (string | number)[];

export function read(value: Value | undefined, path: Path): Value | undefined {
  return path.reduce<Value | undefined>((inner, key) => {
    if (Array.isArray(inner)) return typeof key === "number" ? inner[key] : undefined;
    return isFields(inner) ? inner[key] : undefined;
  }, value);
}

/** The text of a scalar; empty for what is not there. */
export function readText(value: Value | undefined, path: Path): string {
  const found = read(value, path);
  return found === undefined || found === null || typeof found === "object" ? "" : String(found);
}

/** A copy with one value set; undefined takes it away, and with it each mapping that it leaves empty. */
export function write<Whole extends Value>(whole: Whole, path: Path, value: Value | undefined): Whole {
  return (written(whole, path, value) ?? {}) as Whole;
}

function written(inner: Value | undefined, path: Path, value: Value | undefined): Value | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (typeof key === "number") {
    const list = Array.isArray(inner) ? [...inner] : [];
    const item = written(list[key], rest, value);
    if (item === undefined) list.splice(key, 1);
    else list[key] = item;
    return list;
  }
  const fields = isFields(inner) ? { ...inner } : {};
  const field = written(fields[key], rest, value);
  if (field === undefined) delete fields[key];
  else fields[key] = field;
  return value === undefined && Object.keys(fields).length === 0 ? undefined : fields;
}

const WRITTEN_BY_AUTHORS = ["name", "generateName", "namespace", "labels", "annotations"];

/** The object without the server's additions: its status, and the metadata that authors do not write. */
export function authored(manifest: Manifest): Manifest {
  const { status: _, ...rest } = manifest;
  const metadata = Object.fromEntries(
    Object.entries(manifest.metadata).filter(([key]) => WRITTEN_BY_AUTHORS.includes(key)),
  );
  return { ...rest, apiVersion: manifest.apiVersion, kind: manifest.kind, metadata };
}

/** The fields of a kind's manifests as the server describes them (OpenAPI 3.0, nested and without references). */
import type { Path } from "./object.ts";

export interface FieldSchema {
  description?: string;
  type?: string;
  properties?: Record<string, FieldSchema>;
  items?: FieldSchema;
  additionalProperties?: FieldSchema | boolean;
  required?: readonly string[];
  enum?: readonly string[];
  default?: unknown;
  "x-kubernetes-int-or-string"?: boolean;
}

/** The kinds of one group and version, by name. */
export type KindDocs = ReadonlyMap<string, FieldSchema>;

export interface DescribedKinds {
  /** The versions that the server describes, such as `kueue.x-k8s.io/v1beta2`. */
  versions: readonly string[];
  /** By version, as far as they have been read. */
  kinds: ReadonlyMap<string, KindDocs>;
}

/** The schema at a path; undefined where nothing is described. */
export function schemaAt(schema: FieldSchema | undefined, path: Path): FieldSchema | undefined {
  return path.reduce<FieldSchema | undefined>((at, key) => {
    if (at === undefined) return undefined;
    if (typeof key === "number") return at.items;
    const values = at.additionalProperties;
    return at.properties?.[key] ?? (typeof values === "object" ? values : undefined);
  }, schema);
}

/** The type of a field in the words of `kubectl explain`. */
export function typeText(schema: FieldSchema): string {
  if (schema["x-kubernetes-int-or-string"]) return "Quantity";
  if (schema.items !== undefined) return `[]${typeText(schema.items)}`;
  if (typeof schema.additionalProperties === "object" && schema.properties === undefined)
    return `map[string]${typeText(schema.additionalProperties)}`;
  return schema.type === undefined || schema.type === "object" ? "Object" : schema.type;
}

/** The text after a completed key: the beginning of its value, `indent` spaces further in. */
export function valueStart(schema: FieldSchema, indent: number): string {
  const inner = " ".repeat(indent + 2);
  if (schema.items !== undefined) return `:\n${inner}- `;
  return typeText(schema) === "Object" || typeText(schema).startsWith("map[") ? `:\n${inner}` : ": ";
}

/** The values that a field may have, as they are written; none where any may. */
export function choicesOf(schema: FieldSchema): readonly string[] {
  return schema.enum ?? (schema.type === "boolean" ? ["true", "false"] : []);
}

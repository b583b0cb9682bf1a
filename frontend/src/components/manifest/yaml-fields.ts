/** Fields for the editor of YAML: their help at a place of the text, and the names to choose from. */
import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  startCompletion,
} from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import {
  choicesOf,
  type DescribedKinds,
  type FieldSchema,
  schemaAt,
  typeText,
  valueStart,
} from "@/lib/manifest/field-docs";
import { placeAt, type YamlPlace } from "@/lib/manifest/yaml-place";

/** A field of the text, and what the server says of it. */
export interface FieldHelp {
  /** `spec.resourceGroups[].flavors[].name` */
  path: string;
  type: string;
  description: string;
  choices: readonly string[];
  isRequired: boolean;
  from: number;
  to: number;
}

const ROOT_KEYS = ["apiVersion", "kind"];

function schemaOf({ kinds }: DescribedKinds, { head }: YamlPlace): FieldSchema | undefined {
  return head === null ? undefined : kinds.get(head.apiVersion)?.get(head.kind);
}

const dotted = (path: YamlPlace["path"]) =>
  path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[]` : text === "" ? key : `${text}.${key}`),
    "",
  );

/** The help of the field at an offset; null where nothing is described. */
export function helpAt(text: string, offset: number, described: DescribedKinds): FieldHelp | null {
  const place = placeAt(text, offset);
  if (place === null) return null;
  const root = schemaOf(described, place);
  const schema = schemaAt(root, place.path);
  if (schema?.description === undefined) return null;
  const name = place.path.at(-1);
  const around = schemaAt(root, place.path.slice(0, -1));
  return {
    path: dotted(place.path),
    type: typeText(schema),
    description: schema.description,
    choices: choicesOf(schema),
    isRequired: typeof name === "string" && (around?.required?.includes(name) ?? false),
    from: place.from,
    to: place.to,
  };
}

function isFieldWithoutObject({ head, path }: YamlPlace, key: string): boolean {
  return head === null && path.at(-1) === key;
}

/** The values at a place: of a choice, of the kinds that are described, or of their versions. */
function valuesAt(place: YamlPlace, described: DescribedKinds): readonly string[] {
  const name = place.path.at(-1);
  if (name === "apiVersion" && place.path.length === 1) return described.versions;
  if (isFieldWithoutObject(place, "apiVersion")) return described.versions;
  if (name === "kind" && place.path.length === 1)
    return [...(described.kinds.get(place.head?.apiVersion ?? "")?.keys() ?? [])];
  const schema = schemaAt(schemaOf(described, place), place.path);
  return schema === undefined ? [] : choicesOf(schema);
}

/** Writes the name of a field and what its value begins with, and offers the values where there are some. */
function writer(name: string, schema: FieldSchema, indent: number) {
  return (view: EditorView, _: Completion, from: number, to: number) => {
    const isNamed = view.state.sliceDoc(to, to + 1) === ":";
    const written = isNamed ? name : `${name}${valueStart(schema, indent)}`;
    view.dispatch({
      changes: { from, to, insert: written },
      selection: { anchor: from + written.length },
      userEvent: "input.complete",
    });
    if (!isNamed && choicesOf(schema).length > 0) startCompletion(view);
  };
}

function namesAt(place: YamlPlace, described: DescribedKinds, indent: number): Completion[] {
  const around = schemaAt(schemaOf(described, place), place.path.slice(0, -1));
  const own = place.path.at(-1);
  return Object.entries(around?.properties ?? {})
    .filter(([name]) => name !== "status" || place.path.length > 1)
    .filter(([name]) => name === own || !place.siblings.includes(name))
    .map(([name, schema]) => ({
      label: name,
      type: "property",
      detail: typeText(schema),
      apply: writer(name, schema, indent),
      ...(schema.description === undefined ? {} : { info: schema.description }),
      ...(around?.required?.includes(name) ? { boost: 1 } : {}),
    }));
}

/** The names or values that may stand at the cursor. */
export function completions(context: CompletionContext, described: DescribedKinds): CompletionResult | null {
  const place = placeAt(context.state.doc.toString(), context.pos);
  if (place === null) return null;
  const line = context.state.doc.lineAt(context.pos);
  const isTyped = context.pos > place.from;
  if (!isTyped && !context.explicit) return null;
  const options =
    place.part === "key"
      ? place.head === null
        ? ROOT_KEYS.filter((name) => !place.siblings.includes(name)).map((label) => ({
            label,
            apply: `${label}: `,
          }))
        : namesAt(place, described, place.from - line.from)
      : valuesAt(place, described).map((label) => ({ label, type: "enum" }));
  return options.length === 0 ? null : { from: place.from, to: place.to, options, validFor: /^[\w./-]*$/ };
}

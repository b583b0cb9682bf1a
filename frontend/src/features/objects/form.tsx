/** Parts of the forms of objects: each shows one place of the manifest, and writes it there. */
import { Autocomplete, Select, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { shownMoment, writtenMoment } from "@/lib/manifest/moment";
import { isFields, type Manifest, type Path, read, readText, write } from "@/lib/manifest/object";
import { besideInput } from "./field-help";

/** One quota of a queue. */
export interface QuotaPlace {
  flavor: string;
  resource: string;
}

export interface FormProps {
  manifest: Manifest;
  /** By the place in the manifest, as the server writes it. */
  faults: ReadonlyMap<string, string>;
  isNew: boolean;
  /** The quota that the form was opened for. */
  quota?: QuotaPlace | undefined;
  /** The server's help on a field; empty where it has none. */
  helpOf?: (path: Path) => string;
  onChange: (manifest: Manifest) => void;
}

/** `spec.resourceGroups[0].flavors[1]` */
export function placeOf(path: Path): string {
  return path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? key : `${text}.${key}`),
    "",
  );
}

interface FieldProps extends FormProps {
  path: Path;
  label: string;
  description?: string;
  placeholder?: string;
  disabled?: boolean;
  required?: boolean;
}

function shared(props: FieldProps) {
  const { manifest, faults, helpOf, path, label, description, placeholder, disabled, required } = props;
  return {
    label,
    ...besideInput(label, helpOf?.(path) ?? ""),
    size: "xs" as const,
    value: readText(manifest, path),
    error: faults.get(placeOf(path)),
    spellCheck: false,
    ...(description === undefined ? {} : { description }),
    ...(placeholder === undefined ? {} : { placeholder }),
    ...(disabled === undefined ? {} : { disabled }),
    ...(required === undefined ? {} : { required }),
  };
}

/** An empty text is no field at all, unless the field is required. */
const setter =
  ({ manifest, path, onChange, required = false }: FieldProps) =>
  (text: string) =>
    onChange(write(manifest, path, text === "" && !required ? undefined : text));

export function TextField(props: FieldProps) {
  const set = setter(props);
  return <TextInput {...shared(props)} onChange={(event) => set(event.currentTarget.value.trim())} />;
}

/** A name that may be any, with those that are there to choose from. */
export function NameField({ names, ...props }: FieldProps & { names: readonly string[] }) {
  return (
    <Autocomplete {...shared(props)} data={[...names]} onChange={(text) => setter(props)(text.trim())} />
  );
}

/** A moment, in the reader's zone. */
export function MomentField(props: FieldProps) {
  const set = setter(props);
  const { value, ...look } = shared(props);
  return (
    <TextInput
      {...look}
      type="datetime-local"
      value={shownMoment(value)}
      onChange={(event) => {
        const typed = event.currentTarget.value;
        set(typed === "" ? "" : writtenMoment(new Date(typed)));
      }}
    />
  );
}

/** A list of names, one per line. */
export function NamesField({
  manifest,
  faults,
  helpOf,
  path,
  label,
  description = "",
  onChange,
}: FieldProps) {
  const found = read(manifest, path);
  return (
    <LinesField
      label={label}
      description={description}
      help={helpOf?.(path) ?? ""}
      error={faults.get(placeOf(path))}
      lines={Array.isArray(found) ? found.map(String) : []}
      onLines={(lines) => onChange(write(manifest, path, lines.length === 0 ? undefined : lines))}
    />
  );
}

const WHOLE_NUMBER = /^-?\d+$/;

/** A whole number; what is none stays text, and the server says so. */
export function NumberField(props: FieldProps) {
  const { manifest, path, onChange } = props;
  const set = (text: string) =>
    onChange(write(manifest, path, text === "" ? undefined : WHOLE_NUMBER.test(text) ? Number(text) : text));
  return (
    <TextInput
      {...shared(props)}
      inputMode="numeric"
      onChange={(event) => set(event.currentTarget.value.trim())}
    />
  );
}

interface ChoiceFieldProps extends FieldProps {
  choices: { value: string; label: string }[];
  /** "boolean": true and false are written, not their names. */
  values?: "boolean";
  /** The value that counts where the manifest has none. */
  initial: string;
}

export function ChoiceField({ choices, initial, values, ...props }: ChoiceFieldProps) {
  const { value, spellCheck: _, ...look } = shared(props);
  const { manifest, path, onChange } = props;
  // What counts anyway is not written into a block that was not there: that would switch on what the block is about.
  // From one that was there it is not taken out: that might switch it off.
  const [isOfBlock] = useState(() => isFields(read(manifest, path.slice(0, 1))));
  const set = (chosen: string) => {
    if (chosen === initial && !isOfBlock) onChange(write(manifest, path, undefined));
    else if (values === "boolean") onChange(write(manifest, path, chosen === "true"));
    else setter(props)(chosen);
  };
  return (
    <Select
      {...look}
      data={choices}
      value={value === "" ? initial : value}
      allowDeselect={false}
      onChange={(chosen) => chosen !== null && set(chosen)}
    />
  );
}

interface LinesFieldProps {
  label: string;
  description: string;
  error: string | undefined;
  /** The server's help on the field. */
  help?: string;
  lines: readonly string[];
  /** Lines are a text, in which empty ones and spaces count. */
  verbatim?: boolean;
  onLines: (lines: string[]) => void;
}

const filled = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** A list, one item per line. What is typed stays as it is while it says what the manifest says. */
export function LinesField({
  label,
  description,
  error,
  help = "",
  lines,
  verbatim = false,
  onLines,
}: LinesFieldProps) {
  const [typed, setTyped] = useState("");
  const read = verbatim ? (text: string) => text.split("\n") : filled;
  const isAsTyped = read(typed).join("\n") === lines.join("\n");
  return (
    <Textarea
      {...besideInput(label, help)}
      label={label}
      description={description}
      error={error}
      size="xs"
      autosize
      minRows={2}
      spellCheck={false}
      value={isAsTyped ? typed : lines.join("\n")}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        onLines(read(event.currentTarget.value));
      }}
    />
  );
}

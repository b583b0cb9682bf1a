/** The form beside the manifest: each field edits its line of the text, and shows what the text says. */
import { t } from "@lingui/core/macro";
import { Select, SimpleGrid, TextInput } from "@mantine/core";
import { useState } from "react";
import { canWrite, type FieldName, readFields, readName, writeField, writeName } from "./manifest-fields";

interface FieldLook {
  field: FieldName;
  label: string;
  placeholder?: string;
  /** Over the whole width. */
  wide?: boolean;
}

const looks = (): FieldLook[] => [
  { field: "image", label: t`Image`, wide: true },
  { field: "command", label: t`Command`, placeholder: t`default of the image`, wide: true },
  { field: "replicas", label: t`Pods` },
  { field: "cpu", label: t`CPU cores`, placeholder: t`none` },
  { field: "memory", label: t({ message: "Memory", context: "of a node" }), placeholder: t`none` },
  { field: "gpus", label: t`GPUs`, placeholder: t`none` },
  { field: "gpuMemory", label: t`Memory of each GPU (MiB)`, placeholder: t`all` },
  { field: "gpuCores", label: t`Cores of each GPU (%)`, placeholder: t`default of the device plugin` },
];

export interface JobFormProps {
  text: string;
  priorityClasses: string[];
  onText: (text: string) => void;
}

export function JobForm({ text, priorityClasses, onText }: JobFormProps) {
  const values = readFields(text);
  const name = readName(text);
  const beginning = name?.generated;
  const [generated, setGenerated] = useState("job-");
  const rename = (own: string) => {
    if (beginning) setGenerated(beginning); // an emptied name is generated again as before
    onText(writeName(text, own, generated));
  };
  return (
    <SimpleGrid cols={2} spacing="xs" verticalSpacing="xs">
      <TextInput
        label={t`Name`}
        placeholder={beginning ? t`${beginning} and a random ending` : ""}
        size="xs"
        spellCheck={false}
        style={{ gridColumn: "1 / -1" }}
        disabled={name === null}
        value={name?.own ?? ""}
        onChange={(event) => rename(event.currentTarget.value)}
      />
      {looks().map(({ field, label, placeholder = "", wide = false }) => (
        <TextInput
          key={field}
          label={label}
          placeholder={placeholder}
          size="xs"
          spellCheck={false}
          {...(wide ? { style: { gridColumn: "1 / -1" } } : {})}
          disabled={values[field] === undefined && !canWrite(text, field)}
          value={values[field] ?? ""}
          onChange={(event) => onText(writeField(text, field, event.currentTarget.value))}
        />
      ))}
      <Select
        label={t`Priority class`}
        placeholder={t`none`}
        size="xs"
        style={{ gridColumn: "1 / -1" }}
        data={priorityClasses}
        clearable
        value={values.priorityClass ?? null}
        onChange={(name) => onText(writeField(text, "priorityClass", name ?? ""))}
      />
    </SimpleGrid>
  );
}

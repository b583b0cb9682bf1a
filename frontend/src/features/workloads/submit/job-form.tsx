/** The form beside the manifest: each field edits its line of the text, and shows what the text says. */
import { Select, SimpleGrid, TextInput } from "@mantine/core";
import { canWrite, type FieldName, readFields, writeField } from "./manifest-fields";

interface FieldLook {
  field: FieldName;
  label: string;
  placeholder?: string;
  /** Over the whole width. */
  wide?: boolean;
}

const LOOKS: FieldLook[] = [
  { field: "image", label: "Image", wide: true },
  { field: "command", label: "Command", placeholder: "that of the image", wide: true },
  { field: "replicas", label: "Pods" },
  { field: "cpu", label: "CPU cores", placeholder: "none" },
  { field: "memory", label: "Memory", placeholder: "none" },
  { field: "gpus", label: "GPUs", placeholder: "none" },
  { field: "gpuMemory", label: "Memory of each GPU (MiB)", placeholder: "all of it" },
  { field: "gpuCores", label: "Cores of each GPU (%)", placeholder: "as the plugin says" },
];

export interface JobFormProps {
  text: string;
  priorityClasses: string[];
  onText: (text: string) => void;
}

export function JobForm({ text, priorityClasses, onText }: JobFormProps) {
  const values = readFields(text);
  return (
    <SimpleGrid cols={2} spacing="xs" verticalSpacing="xs">
      {LOOKS.map(({ field, label, placeholder = "", wide = false }) => (
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
        label="Priority class"
        placeholder="none"
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

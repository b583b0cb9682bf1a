/** The half of an editor in which a manifest is written as text; the other half is a form. */
import { t } from "@lingui/core/macro";
import { Textarea } from "@mantine/core";

export interface ManifestTextProps {
  label?: string;
  text: string;
  onText: (text: string) => void;
  description: string;
  error?: string;
  maxRows?: number;
}

export function ManifestText({ label, text, onText, description, error, maxRows = 24 }: ManifestTextProps) {
  return (
    <Textarea
      label={label ?? t`Manifest`}
      description={description}
      error={error}
      autosize
      minRows={14}
      maxRows={maxRows}
      spellCheck={false}
      required
      styles={{
        input: {
          fontFamily: "var(--mantine-font-family-monospace)",
          fontSize: "0.78125rem",
          overflowX: "auto",
          whiteSpace: "pre",
        },
      }}
      value={text}
      onChange={(event) => onText(event.currentTarget.value)}
    />
  );
}

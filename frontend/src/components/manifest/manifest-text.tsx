/** The half of an editor in which a manifest is written as text; the other half is a form. */
import { t } from "@lingui/core/macro";
import { Textarea } from "@mantine/core";

export interface ManifestTextProps {
  text: string;
  onText: (text: string) => void;
  description: string;
  error?: string;
}

export function ManifestText({ text, onText, description, error }: ManifestTextProps) {
  return (
    <Textarea
      label={t`Manifest`}
      description={description}
      error={error}
      autosize
      minRows={14}
      maxRows={24}
      spellCheck={false}
      required
      styles={{
        input: {
          fontFamily: "var(--mantine-font-family-monospace)",
          fontSize: 12.5,
          overflowX: "auto",
          whiteSpace: "pre",
        },
      }}
      value={text}
      onChange={(event) => onText(event.currentTarget.value)}
    />
  );
}

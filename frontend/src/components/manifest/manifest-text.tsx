/** The half of an editor in which a manifest is written as text; the other half is a form. */
import { t } from "@lingui/core/macro";
import { Textarea } from "@mantine/core";
import { type ComponentType, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { DescribedKinds } from "@/lib/manifest/field-docs";

export interface ManifestTextProps {
  label?: string;
  text: string;
  onText: (text: string) => void;
  /** The kinds whose fields the editor offers and explains. */
  described: DescribedKinds;
  description: string;
  error?: string;
  maxRows?: number;
}

type Editor = ComponentType<ManifestTextProps & { label: string; maxRows: number }>;

/** The editor, with colours and help. A plain field stands for it until its script is there, or where it cannot be read. */
export function ManifestText({ label, maxRows = 24, ...props }: ManifestTextProps) {
  const [Editor, setEditor] = useState<Editor | null>(null);
  const plain = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    let isShown = true;
    import("./yaml-editor").then(
      ({ YamlEditor }) => {
        // The field of a reader who types already stays: an exchange would take the focus away.
        // The exchange is made at once: between the question and a later drawing, a reader could enter the field.
        if (isShown && document.activeElement !== plain.current) flushSync(() => setEditor(() => YamlEditor));
      },
      () => undefined,
    );
    return () => {
      isShown = false;
    };
  }, []);
  const shared = { ...props, label: label ?? t`Manifest`, maxRows };
  return Editor === null ? <PlainText {...shared} ref={plain} /> : <Editor {...shared} />;
}

function PlainText({
  described: _,
  onText,
  text,
  ...look
}: ManifestTextProps & { label: string; maxRows: number; ref: React.Ref<HTMLTextAreaElement> }) {
  return (
    <Textarea
      {...look}
      autosize
      minRows={14}
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

/**
 * An editor of YAML: colours, the names of fields to choose from, and the help of the field at the cursor or below the
 * pointer. Its script is loaded with the first editor that opens.
 */
import {
  acceptCompletion,
  autocompletion,
  completionKeymap,
  completionStatus,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentService, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Annotation, type ChangeSpec, EditorState } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { t } from "@lingui/core/macro";
import { Input, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { DescribedKinds } from "@/lib/manifest/field-docs";
import { indentBelow } from "@/lib/manifest/yaml-place";
import type { ManifestTextProps } from "./manifest-text";
import classes from "./yaml-editor.module.css";
import { completions, type FieldHelp, helpAt } from "./yaml-fields";

const SETTLED_MS = 250;
/** The height of a line, as the style sheet has it. */
const LINE_REM = 0.78125 * 1.55;

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], class: classes.key ?? "" },
  { tag: [tags.string, tags.content, tags.special(tags.string)], class: classes.string ?? "" },
  { tag: [tags.number, tags.bool, tags.null], class: classes.number ?? "" },
  { tag: [tags.comment, tags.lineComment], class: classes.comment ?? "" },
  { tag: [tags.separator, tags.punctuation, tags.squareBracket, tags.brace], class: classes.mark ?? "" },
]);

/** A change that follows the form beside the text; it is not the reader's own. */
const fromOutside = Annotation.define<boolean>();

/** The part in which the texts differ: the cursor stays where the rest is the same. */
function difference(before: string, after: string): ChangeSpec {
  let from = 0;
  const shorter = Math.min(before.length, after.length);
  while (from < shorter && before[from] === after[from]) from += 1;
  let end = 0;
  while (end < shorter - from && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return { from, to: before.length - end, insert: after.slice(from, after.length - end) };
}

function tooltip({ path, type, description }: FieldHelp): HTMLElement {
  const box = document.createElement("div");
  box.className = classes.tooltip ?? "";
  const name = box.appendChild(document.createElement("code"));
  name.textContent = `${path}  <${type}>`;
  box.appendChild(document.createElement("p")).textContent = description;
  return box;
}

interface Live {
  described: DescribedKinds;
  onText: (text: string) => void;
  onPlace: (offset: number) => void;
}

function extensions(live: { current: Live }) {
  return [
    lineNumbers(),
    history(),
    yaml(),
    indentUnit.of("  "),
    indentService.of(({ state }, offset) => {
      const above = state.doc.lineAt(offset);
      const next = above.number < state.doc.lines ? state.doc.line(above.number + 1).text : "";
      return indentBelow(above.text.slice(0, offset - above.from), next);
    }),
    syntaxHighlighting(colours),
    autocompletion({ override: [(context) => completions(context, live.current.described)], icons: false }),
    hoverTooltip((view, offset) => {
      const help = helpAt(view.state.doc.toString(), offset, live.current.described);
      return help === null
        ? null
        : { pos: help.from, end: help.to, above: true, create: () => ({ dom: tooltip(help) }) };
    }),
    // Tab leaves the editor, as it leaves any other field; only in the list of names it takes one.
    keymap.of([
      { key: "Tab", run: acceptCompletion },
      ...completionKeymap,
      ...defaultKeymap,
      ...historyKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.some((each) => each.annotation(fromOutside)))
        live.current.onText(update.state.doc.toString());
      if (update.docChanged || update.selectionSet) live.current.onPlace(update.state.selection.main.head);
    }),
    // Escape closes the list of names first, and not the dialog around it.
    EditorView.contentAttributes.of(
      (view): Record<string, string> => ({
        tabindex: "0",
        ...(completionStatus(view.state) === null ? {} : { "data-mantine-stop-propagation": "true" }),
      }),
    ),
  ];
}

export function YamlEditor({
  label,
  text: given,
  described,
  onText,
  description,
  error,
  maxRows,
}: ManifestTextProps & { label: string; maxRows: number }) {
  const id = useId();
  const text = given.replace(/\r\n?/g, "\n"); // the editor has no other ends of lines
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const [offset, setOffset] = useState(0);
  const place = useMemo(() => ({ text, offset }), [text, offset]); // a new object each time would never settle
  const [settled] = useDebouncedValue(place, SETTLED_MS);
  const help = helpAt(settled.text, settled.offset, described);
  const live = useRef<Live>({ described, onText, onPlace: setOffset });
  live.current = { described, onText, onPlace: setOffset };

  // biome-ignore lint/correctness/useExhaustiveDependencies: the view is made once; its text follows below
  useEffect(() => {
    if (host.current === null) return;
    const made = new EditorView({
      parent: host.current,
      state: EditorState.create({ doc: text, extensions: extensions(live) }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, []);

  // Before the next key: an effect after the drawing would take back the letter that was typed in between.
  useLayoutEffect(() => {
    const now = view.current?.state.doc.toString();
    if (now === undefined || now === text) return;
    view.current?.dispatch({ changes: difference(now, text), annotations: fromOutside.of(true) });
  }, [text]);

  // The attributes are those of the element that takes the keys.
  useEffect(() => {
    const content = view.current?.contentDOM;
    if (content === undefined) return;
    content.setAttribute("aria-labelledby", `${id}-label`);
    const fault = error === undefined ? "" : `${id}-error `;
    content.setAttribute("aria-describedby", `${fault}${id}-description ${id}-help`);
    content.setAttribute("aria-invalid", String(error !== undefined));
    content.setAttribute("aria-required", "true");
  }, [id, error]);

  return (
    <Input.Wrapper
      label={label}
      labelElement="div"
      labelProps={{ id: `${id}-label`, onClick: () => view.current?.focus() }}
      description={`${description} ${t`Ctrl+Space offers names of fields. Tab leaves the editor.`}`}
      descriptionProps={{ id: `${id}-description` }}
      error={error}
      errorProps={{ id: `${id}-error` }}
      required
    >
      <div
        ref={host}
        className={classes.editor}
        data-error={error !== undefined || undefined}
        style={{ maxHeight: `${maxRows * LINE_REM}rem` }}
      />
      <div id={`${id}-help`} className={classes.help} aria-live="polite">
        {help === null ? (
          <Text span inherit c="var(--kw-muted)">
            {t`Place the cursor in a field to read its help.`}
          </Text>
        ) : (
          <HelpText help={help} />
        )}
      </div>
    </Input.Wrapper>
  );
}

function HelpText({ help: { path, type, description, choices, isRequired } }: { help: FieldHelp }) {
  const values = choices.join(", ");
  return (
    <>
      <code>{path}</code> <span className={classes.type}>{`<${type}>`}</span>
      {isRequired && <span className={classes.type}> {t`required`}</span>}
      <div>{description}</div>
      {values !== "" && <div>{t`One of: ${values}`}</div>}
    </>
  );
}

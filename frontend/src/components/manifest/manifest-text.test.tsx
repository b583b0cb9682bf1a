import { EditorView } from "@codemirror/view";
import { act, screen, waitFor } from "@testing-library/react";
import { useLayoutEffect, useState } from "react";
import { expect, it, vi } from "vitest";
import type { DescribedKinds } from "@/lib/manifest/field-docs";
import { renderPart } from "@/test-render";
import { ManifestText } from "./manifest-text";

const TEXT = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nspec:\n  parentName: root\n";
const DESCRIBED: DescribedKinds = {
  versions: ["kueue.x-k8s.io/v1beta2"],
  kinds: new Map([
    [
      "kueue.x-k8s.io/v1beta2",
      new Map([
        [
          "Cohort",
          {
            properties: {
              spec: { properties: { parentName: { type: "string", description: "The cohort above it." } } },
            },
          },
        ],
      ]),
    ],
  ]),
};

function Field({ onText }: { onText: (text: string) => void }) {
  const [text, setText] = useState(TEXT);
  return (
    <>
      <button type="button" onClick={() => setText(TEXT.replace("root", "other"))}>
        The form
      </button>
      <ManifestText text={text} onText={onText} described={DESCRIBED} description="YAML." error="wrong" />
    </>
  );
}

/** Types a second letter after the first one is drawn, before the effects of the drawing. */
function FastTypist() {
  const [text, setText] = useState("a: 1\r\nb: 2\r\nc: 3\n");
  useLayoutEffect(() => {
    if (!text.startsWith("xa")) return;
    const view = EditorView.findFromDOM(screen.getByRole("textbox"));
    view?.dispatch({ changes: { from: 1, insert: "y" }, selection: { anchor: 2 } });
  }, [text]);
  return <ManifestText text={text} onText={setText} described={DESCRIBED} description="YAML." />;
}

async function open(onText = vi.fn(), part = <Field onText={onText} />): Promise<EditorView> {
  await renderPart(part);
  return waitFor(() => {
    const found = EditorView.findFromDOM(screen.getByRole("textbox"));
    if (found === null) throw new Error("the editor is not there yet");
    return found;
  });
}

it("has the label, the description and the fault of the field", async () => {
  const { contentDOM } = await open();
  expect(screen.getByRole("textbox", { name: "Manifest" })).toBe(contentDOM);
  expect(contentDOM.getAttribute("aria-invalid")).toBe("true");
  expect(contentDOM.getAttribute("aria-describedby")?.split(" ")).toContain(screen.getByText("wrong").id);
});

it("reports what is typed, and follows the form without reporting", async () => {
  const onText = vi.fn();
  const view = await open(onText);
  act(() => screen.getByText("The form").click());
  await waitFor(() => expect(view.state.doc.toString()).toContain("parentName: other"));
  expect(onText).not.toHaveBeenCalled();
  act(() => view.dispatch({ changes: { from: 0, insert: "# mine\n" } }));
  expect(onText).toHaveBeenCalledWith(expect.stringMatching(/^# mine\napiVersion/));
});

it("keeps lines that end as on Windows, and the letters of a fast typist", async () => {
  const view = await open(vi.fn(), <FastTypist />);
  expect(view.state.doc.toString()).toBe("a: 1\nb: 2\nc: 3\n");
  act(() => view.dispatch({ changes: { from: 0, insert: "x" }, selection: { anchor: 1 } }));
  expect(view.state.doc.toString()).toBe("xya: 1\nb: 2\nc: 3\n");
  expect(view.state.selection.main.head).toBe(2);
});

it("shows the help of the field at the cursor", async () => {
  const view = await open();
  act(() => view.dispatch({ selection: { anchor: TEXT.indexOf("parentName") + 3 } }));
  expect(await screen.findByText("The cohort above it.")).toBeTruthy();
  expect(screen.getByText("spec.parentName")).toBeTruthy();
});

it("draws nothing again while nothing is typed", async () => {
  let reads = 0;
  const described: DescribedKinds = {
    ...DESCRIBED,
    get kinds() {
      reads += 1;
      return DESCRIBED.kinds;
    },
  };
  const part = <ManifestText text={TEXT} onText={vi.fn()} described={described} description="YAML." />;
  const view = await open(vi.fn(), part);
  act(() => view.dispatch({ selection: { anchor: TEXT.indexOf("parentName") + 3 } }));
  await screen.findByText("The cohort above it.");
  const settled = reads;
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(reads).toBe(settled);
});

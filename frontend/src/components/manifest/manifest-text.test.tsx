import { EditorView } from "@codemirror/view";
import { act, screen, waitFor } from "@testing-library/react";
import { useState } from "react";
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

async function open(onText = vi.fn()): Promise<EditorView> {
  await renderPart(<Field onText={onText} />);
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
  expect(screen.getByText("wrong")).toBeTruthy();
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

it("shows the help of the field at the cursor", async () => {
  const view = await open();
  act(() => view.dispatch({ selection: { anchor: TEXT.indexOf("parentName") + 3 } }));
  expect(await screen.findByText("The cohort above it.")).toBeTruthy();
  expect(screen.getByText("spec.parentName")).toBeTruthy();
});

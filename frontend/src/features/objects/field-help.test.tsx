import { act, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, it } from "vitest";
import type { Manifest } from "@/lib/manifest/object";
import { renderPart } from "@/test-render";
import { TextField } from "./form";

const COHORT: Manifest = {
  apiVersion: "kueue.x-k8s.io/v1beta2",
  kind: "Cohort",
  metadata: { name: "all" },
  spec: {},
};

function Form() {
  const [help, setHelp] = useState("");
  return (
    <>
      <TextField
        manifest={COHORT}
        faults={new Map()}
        isNew
        path={["metadata", "name"]}
        label="Name"
        helpOf={() => help}
        onChange={() => undefined}
      />
      <button type="button" onClick={() => setHelp("The name of the object.")}>
        Load
      </button>
    </>
  );
}

it("leaves the focus in an input when its help arrives", async () => {
  await renderPart(<Form />);
  const input = screen.getByLabelText("Name");
  act(() => input.focus());
  act(() => screen.getByText("Load").click());
  expect(await screen.findByRole("button", { name: "Help on Name" })).toBeTruthy();
  expect(document.activeElement).toBe(input);
});

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, test } from "vitest";
import type { WorkloadView } from "@/lib/url/workload-filters";
import { renderPart } from "@/test-render";
import { ViewBar } from "./view-bar";

function Bar() {
  const [view, setView] = useState<WorkloadView>({ sort: "-priority", widths: "name~300" });
  return (
    <>
      <ViewBar view={view} onView={setView} />
      <output>{JSON.stringify(view)}</output>
    </>
  );
}

const shown = () => JSON.parse(screen.getByRole("status").textContent ?? "") as WorkloadView;

test("columns are left out, added from fields, labels and annotations, and put back as they were", async () => {
  await renderPart(<Bar />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Columns" }));
  await user.click(await screen.findByRole("checkbox", { name: "Priority" }));
  await user.click(screen.getByRole("checkbox", { name: "Submitted by" }));
  await user.type(screen.getByLabelText("Key of the column"), "team{Enter}");
  await user.selectOptions(screen.getByLabelText("Column type"), "Annotation");
  await user.type(screen.getByLabelText("Key of the column"), "not a key{Enter}");
  expect(screen.getByText("Not a valid key")).toBeTruthy();
  await user.clear(screen.getByLabelText("Key of the column"));
  await user.type(screen.getByLabelText("Key of the column"), "example.com/cost{Enter}");
  const kept = { sort: "-priority", widths: "name~300" };
  expect(shown()).toEqual({
    ...kept,
    hide: "priority",
    columns: "submitted_by,label:team,annotation:example.com/cost",
  });
  await user.click(screen.getByRole("button", { name: "Remove the column team" }));
  expect(shown().columns).toBe("submitted_by,annotation:example.com/cost");
  await user.click(screen.getByRole("button", { name: "Reset columns and widths" }));
  expect(shown()).toEqual({ sort: "-priority" });
});

test("groups are of a field, or of a label whose key is asked for", async () => {
  await renderPart(<Bar />);
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText("Group by"), "By Node");
  expect(shown().group).toBe("node");
  await user.selectOptions(screen.getByLabelText("Group by"), "By a label …");
  await user.type(screen.getByLabelText("Key of the label to group by"), "team{Enter}");
  expect(shown().group).toBe("label:team");
  await user.selectOptions(screen.getByLabelText("Group by"), "No groups");
  expect(shown().group).toBeUndefined();
});

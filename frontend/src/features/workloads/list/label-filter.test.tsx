import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/test-render";
import { LabelFilter } from "./label-filter";

test("a requirement is added to those that are there, with the chosen comparison", async () => {
  const onChange = vi.fn();
  await renderPart(<LabelFilter value="tier=1" onChange={onChange} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Label" }));
  const apply = await screen.findByRole("button", { name: "Apply" });
  expect(apply).toHaveProperty("disabled", true);
  await user.type(screen.getByLabelText("Key"), "example.com/team");
  await user.selectOptions(screen.getByLabelText("Comparison"), "starts with");
  await user.type(screen.getByLabelText("Value"), "vis");
  await user.click(apply);
  expect(onChange).toHaveBeenCalledWith("tier=1,example.com/team^=vis");
});

test("each requirement is shown and taken off by itself", async () => {
  const onChange = vi.fn();
  await renderPart(<LabelFilter value="team in (a,b),!old" onChange={onChange} />);
  await userEvent
    .setup()
    .click(screen.getByRole("button", { name: "Remove the label filter team in (a,b)" }));
  expect(onChange).toHaveBeenCalledWith("!old");
});

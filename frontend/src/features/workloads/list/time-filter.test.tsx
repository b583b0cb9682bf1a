import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/test-render";
import { TimeFilter } from "./time-filter";

test("a range that ends now is chosen, for one of a workload's times", async () => {
  const onChange = vi.fn();
  await renderPart(<TimeFilter range={{}} onChange={onChange} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Time: Any time" }));
  await user.selectOptions(await screen.findByLabelText("Time to filter by"), "Finished");
  await user.click(screen.getByRole("button", { name: "Last 24 hours" }));
  expect(onChange).toHaveBeenCalledWith({ time: "finished", last: "24h" });
});

test("the button says what is narrowed, and the one beside it takes it off", async () => {
  const onChange = vi.fn();
  await renderPart(<TimeFilter range={{ time: "admitted", last: "7d" }} onChange={onChange} />);
  expect(screen.getByRole("button", { name: "Time: Admitted: Last 7 days" })).toBeDefined();
  await userEvent.setup().click(screen.getByRole("button", { name: "Remove Admitted: Last 7 days" }));
  expect(onChange).toHaveBeenCalledWith({});
});

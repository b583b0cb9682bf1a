import { fireEvent, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/test-render";
import { TimeFilter } from "./time-filter";

test("a range that ends now is chosen, for one of a workload's times", async () => {
  const onChange = vi.fn();
  await renderPart(<TimeFilter range={{}} onChange={onChange} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Time" }));
  await user.selectOptions(await screen.findByLabelText("Which time"), "Finished");
  await user.click(screen.getByRole("button", { name: "Last 24 hours" }));
  expect(onChange).toHaveBeenCalledWith({ time: "finished", last: "24h" });
});

test("an own range is handed over once it ends after it begins", async () => {
  const onChange = vi.fn();
  await renderPart(<TimeFilter range={{}} onChange={onChange} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Time" }));
  const apply = await screen.findByRole("button", { name: "Apply" });
  expect(apply).toHaveProperty("disabled", true);
  fireEvent.change(screen.getByLabelText("Beginning"), { target: { value: "2026-01-05T10:00" } });
  fireEvent.change(screen.getByLabelText("End"), { target: { value: "2026-01-05T09:00" } });
  expect(screen.getByText("The end must be after the beginning.")).toBeTruthy();
  expect(apply).toHaveProperty("disabled", true);
  fireEvent.change(screen.getByLabelText("End"), { target: { value: "2026-01-05T11:00" } });
  await user.click(apply);
  const at = (local: string) => new Date(local).toISOString();
  expect(onChange).toHaveBeenCalledWith({ since: at("2026-01-05T10:00"), until: at("2026-01-05T11:00") });
});

test("the chip says what is narrowed and takes it off", async () => {
  const onChange = vi.fn();
  await renderPart(<TimeFilter range={{ time: "admitted", last: "7d" }} onChange={onChange} />);
  const chip = screen.getByRole("button", { name: "Remove the filter Admitted: Last 7 days" });
  await userEvent.setup().click(chip);
  expect(onChange).toHaveBeenCalledWith({});
});

import { fireEvent, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/test-render";
import { rangeWords, TimePicker } from "./time-picker";

const at = (local: string) => new Date(local).toISOString();

test("an own range is handed over once it ends after it begins, and its zone is said", async () => {
  const onChange = vi.fn();
  await renderPart(<TimePicker range={{}} onChange={onChange} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Time: Any time" }));
  const apply = await screen.findByRole("button", { name: "Apply" });
  expect(apply).toHaveProperty("disabled", true);
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  expect(screen.getByText(new RegExp(`Times are in the zone ${timeZone}`))).toBeDefined();
  fireEvent.change(screen.getByLabelText("From"), { target: { value: "2026-01-05T10:00" } });
  fireEvent.change(screen.getByLabelText("To"), { target: { value: "2026-01-05T09:00" } });
  expect(screen.getByText("The end must be after the beginning.")).toBeTruthy();
  expect(apply).toHaveProperty("disabled", true);
  fireEvent.change(screen.getByLabelText("To"), { target: { value: "2026-01-05T11:00" } });
  await user.click(apply);
  expect(onChange).toHaveBeenCalledWith({ since: at("2026-01-05T10:00"), until: at("2026-01-05T11:00") });
});

test("the default of a page stands on the button, and is an empty range", async () => {
  const onChange = vi.fn();
  await renderPart(
    <TimePicker range={{ last: "6h" }} ranges={["1h", "6h"]} fallback="1h" onChange={onChange} />,
  );
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Time: Last 6 hours" }));
  expect(screen.queryByRole("button", { name: "Last 7 days" })).toBeNull();
  await user.click(await screen.findByRole("button", { name: "Last hour" }));
  expect(onChange).toHaveBeenCalledWith({});
});

test("a range within a day says its day once", () => {
  const range = { since: at("2020-11-26T14:05"), until: at("2020-11-26T14:06") };
  expect(rangeWords(range)).toMatch(/26 Nov 2020.*14:05 to 14:06$/);
  expect(rangeWords({ until: at("2020-11-26T14:06") })).toMatch(/^before 26 Nov 2020/);
});

import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { renderPart } from "@/test-render";
import { steps, Tour } from "./tour";

it("leads through eight pages, back and forth", async () => {
  const onLeave = vi.fn();
  const { history } = await renderPart(<Tour onLeave={onLeave} />);
  const user = userEvent.setup();
  expect(steps()).toHaveLength(8);
  for (const [place, { to, title }] of steps().entries()) {
    expect(await screen.findByText(title)).toBeDefined();
    expect(screen.getByText(`Step ${place + 1} of 8`)).toBeDefined();
    await waitFor(() => expect(history.location.pathname).toBe(to));
    if (place < 7) await user.click(screen.getByRole("button", { name: "Next" }));
  }
  await user.click(screen.getByRole("button", { name: "Back" }));
  await waitFor(() => expect(history.location.pathname).toBe("/reports"));
  await user.click(screen.getByRole("button", { name: "Next" }));
  expect(onLeave).not.toHaveBeenCalled();
  await user.click(screen.getByRole("button", { name: "Done" }));
  expect(onLeave).toHaveBeenCalledTimes(1);
});

it("is left by its button and by Escape", async () => {
  const onLeave = vi.fn();
  await renderPart(<Tour onLeave={onLeave} />);
  const user = userEvent.setup();
  await user.click(await screen.findByRole("button", { name: "Leave the tour" }));
  await user.keyboard("{Escape}");
  expect(onLeave).toHaveBeenCalledTimes(2);
});

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/test-render";
import { SavedViews } from "./saved-views";

test("a view is saved under a name, opened again, and deleted", async () => {
  window.localStorage.clear();
  const onOpen = vi.fn();
  await renderPart(
    <SavedViews present={{ status: "Pending", group: "namespace", hide: "age" }} onOpen={onOpen} />,
  );
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Views" }));
  await user.type(await screen.findByLabelText("Name of the view"), "waiting");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await user.click(await screen.findByRole("button", { name: "waiting" }));
  expect(onOpen).toHaveBeenCalledWith({ status: "Pending" }, { group: "namespace", hide: "age" });
  await user.click(screen.getByRole("button", { name: "Views" }));
  await user.click(await screen.findByRole("button", { name: "Delete the view waiting" }));
  expect(screen.queryByRole("button", { name: "waiting" })).toBeNull();
});

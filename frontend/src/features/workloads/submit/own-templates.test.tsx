import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPart, serve } from "@/test-render";
import { OwnTemplates } from "./own-templates";

const nightly = { id: 7, name: "nightly", manifest: "kind: Job\n", generation: 3 };
const READ = /^GET .*\/manifest-templates\//;

async function open(onOpen = vi.fn()) {
  await renderPart(<OwnTemplates manifest="kind: Pod" onOpen={onOpen} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "My templates" }));
  return user;
}

test("a template is opened, replaced under its name and deleted, unless it changed meanwhile", async () => {
  const calls = serve([
    [READ, { body: { results: [nightly], next: null } }],
    [/^PATCH .*\/manifest-templates\/7\//, { body: nightly }],
    [
      /^DELETE .*\/manifest-templates\/7\//,
      { status: 412, body: { reason: "PreconditionFailed", message: "It has changed." } },
    ],
  ]);
  const onOpen = vi.fn();
  const user = await open(onOpen);
  await user.click(await screen.findByRole("button", { name: "nightly" }));
  expect(onOpen).toHaveBeenCalledWith("nightly", "kind: Job\n");

  await user.click(screen.getByRole("button", { name: "My templates" }));
  await user.type(await screen.findByLabelText("Name of the template"), "nightly{Enter}");
  await user.click(await screen.findByRole("button", { name: "Delete the template nightly" }));
  expect((await screen.findByRole("alert")).textContent).toBe("It has changed.");
  const writes = calls.filter(({ method }) => method !== "GET");
  expect(writes.map(({ method, ifMatch, body }) => [method, ifMatch, body])).toEqual([
    ["PATCH", '"3"', { manifest: "kind: Pod" }],
    ["DELETE", '"3"', null],
  ]);
});

test("a new name is a new template", async () => {
  const calls = serve([
    [READ, { body: { results: [], next: null } }],
    [/^POST /, { status: 201, body: nightly }],
  ]);
  const user = await open();
  await screen.findByText(/No templates yet/);
  await user.type(screen.getByLabelText("Name of the template"), "weekly");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(calls.find(({ method }) => method === "POST")?.body).toEqual({
    name: "weekly",
    manifest: "kind: Pod",
  });
});

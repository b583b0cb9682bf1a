import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { renderPart, serve } from "@/test-render";
import { SavedViews } from "./saved-views";

const STORED = "kueueweb.views";
const waiting = {
  id: 7,
  page: "workloads",
  name: "waiting",
  search: { state: "Pending", group: "namespace" },
  generation: 3,
};
const READ = /^GET .*\/saved-views\/\?page=workloads/;

beforeEach(() => {
  window.localStorage.clear();
});

async function open(onOpen = vi.fn()) {
  await renderPart(<SavedViews present={{ state: "Evicted", hide: "age" }} onOpen={onOpen} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Views" }));
  return user;
}

test("a view of the account is opened, replaced under its name and deleted, unless it changed meanwhile", async () => {
  const calls = serve([
    [READ, { body: { results: [waiting], next: null } }],
    [/^PATCH .*\/saved-views\/7\//, { body: waiting }],
    [
      /^DELETE .*\/saved-views\/7\//,
      { status: 412, body: { reason: "PreconditionFailed", message: "It has changed." } },
    ],
  ]);
  const onOpen = vi.fn();
  const user = await open(onOpen);
  await user.click(await screen.findByRole("button", { name: "waiting" }));
  expect(onOpen).toHaveBeenCalledWith({ state: "Pending" }, { group: "namespace" });

  await user.click(screen.getByRole("button", { name: "Views" }));
  await user.type(await screen.findByLabelText("Name of the view"), "waiting{Enter}");
  await user.click(await screen.findByRole("button", { name: "Delete the view waiting" }));
  expect((await screen.findByRole("alert")).textContent).toBe("It has changed.");
  const writes = calls.filter(({ method }) => method !== "GET");
  expect(writes.map(({ method, ifMatch, body }) => [method, ifMatch, body])).toEqual([
    ["PATCH", '"3"', { search: { state: "Evicted", hide: "age" } }],
    ["DELETE", '"3"', null],
  ]);
});

test("a new name is a new view, and what the server says against it is shown", async () => {
  const calls = serve([
    [READ, { body: { results: [], next: null } }],
    [/^POST /, { status: 429, body: { reason: "LimitReached", message: "You have 200 saved views." } }],
  ]);
  const user = await open();
  await screen.findByText(/No saved views yet/);
  await user.type(screen.getByLabelText("Name of the view"), "mine{Enter}");
  expect((await screen.findByRole("alert")).textContent).toBe("You have 200 saved views.");
  expect(calls.at(-1)?.method === "POST" || calls.at(-2)?.method === "POST").toBe(true);
  expect(screen.getByLabelText("Name of the view")).toHaveProperty("value", "mine");
});

test("what this browser had saved moves into the account once; a name that is taken there stays as it is", async () => {
  window.localStorage.setItem(STORED, JSON.stringify([{ name: "waiting", search: { state: "Pending" } }]));
  const calls = serve([
    [READ, { body: { results: [waiting], next: null } }],
    [/^POST /, { status: 409, body: { reason: "AlreadyExists", message: "You have it." } }],
  ]);
  await open();
  await screen.findByRole("button", { name: "waiting" });
  expect(calls.filter(({ method }) => method === "POST").map(({ body }) => body)).toEqual([
    { page: "workloads", name: "waiting", search: { state: "Pending" } },
  ]);
  expect(window.localStorage.getItem(STORED)).toBeNull();
  expect(screen.queryByRole("alert")).toBeNull();
});

test("what could not be moved stays in the browser", async () => {
  window.localStorage.setItem(STORED, JSON.stringify([{ name: "mine", search: {} }]));
  serve([
    [READ, { body: { results: [], next: null } }],
    [/^POST /, { status: 503, body: { reason: "Unavailable", message: "Not now." } }],
  ]);
  await open();
  await screen.findByText(/No saved views yet/);
  expect(window.localStorage.getItem(STORED)).toContain("mine");
});

import { Notifications } from "@mantine/notifications";
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { WorkloadFilters } from "@/lib/url/workload-filters";
import { type Answer, renderPart, serve } from "@/test-render";
import { BulkBar } from "./bulk-bar";
import { selectedOf, useSelection } from "./selection";

const row = (name: string, status: "Pending" | "Admitted" = "Pending") => ({
  uid: name,
  namespace: "a",
  name,
  status,
  pod_sets: [],
});
const ROWS = [row("w-1"), row("w-2")];
const PENDING: WorkloadFilters = { state: "Pending" };

/** Stands for the page: its first row can be ticked. */
function Page() {
  const selection = useSelection("default", PENDING, ROWS);
  return (
    <>
      <button type="button" onClick={() => selection.choose(new Set(["w-1"]))}>
        tick
      </button>
      <BulkBar selection={selection} total={3} />
    </>
  );
}

/** Stands for the application: the reader can leave the page, and its notifications stay. */
function Site() {
  const [isLeft, leave] = useState(false);
  return (
    <ClusterProvider cluster="default">
      <Notifications />
      {!isLeft && <Page />}
      <button type="button" onClick={() => leave(true)}>
        leave
      </button>
    </ClusterProvider>
  );
}

async function holdOne() {
  await renderPart(<Site />);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "tick" }));
  await user.click(screen.getByRole("button", { name: "Hold" }));
  await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Hold" }));
  return { user, undo: await screen.findByRole("button", { name: "Undo" }) };
}

class SilentSocket {
  close(): void {}
}

beforeEach(() => {
  vi.stubGlobal("WebSocket", SilentSocket);
});

test("the selection is widened to all that match, and the action names what it did not change", async () => {
  const skipped = [{ ...row("w-3"), reason: "Conflict", message: "It has ended." }];
  const calls = serve([
    [
      /^GET .*\/workloads\/\?.*state=Pending/,
      { body: { results: [...ROWS, row("w-3", "Admitted")], next: null } },
    ],
    [/^POST .*\/workloads\/hold\//, { body: { changed: ROWS, skipped } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <Page />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "tick" }));
  expect(screen.getByText("1 workload selected")).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Select all 3 matches" }));
  expect(await screen.findByText("3 workloads selected")).toBeTruthy();
  expect(screen.queryByRole("button", { name: /Select all/ })).toBeNull();

  await user.click(screen.getByRole("button", { name: "Hold" }));
  const question = await screen.findByRole("dialog", { name: "Hold 3 workloads?" });
  expect(
    within(question).getByText(/The selection contains all workloads that matched the filters/),
  ).toBeTruthy();
  const effects = within(question).getByRole("status").textContent;
  expect(effects).toContain("1 workload stops: a/w-3");
  expect(effects).toContain("2 waiting workloads leave their places in the queue: a/w-1, a/w-2");
  await user.click(within(question).getByRole("button", { name: "Hold" }));
  const result = await screen.findByRole("dialog", { name: "Hold" });
  expect(within(result).getByText("On hold: 2 of 3 workloads")).toBeTruthy();
  const left = within(result).getByRole("region", { name: "1 skipped" });
  expect(left.textContent).toContain("It has ended.");
  expect(left.textContent).toContain("a/w-3");

  const asked = calls.find(({ address }) => address.includes("/workloads/hold/"))?.body as {
    workloads: { name: string }[];
  };
  expect(asked.workloads.map(({ name }) => name)).toEqual(["w-1", "w-2", "w-3"]);
});

test("of what was collected and what is on screen, those that are chosen are selected once", () => {
  const chosen = new Set(["w-1", "w-3"]);
  expect(selectedOf(chosen, [row("w-1"), row("w-3"), row("w-4")], ROWS)).toEqual([row("w-1"), row("w-3")]);
  expect(selectedOf(chosen, [], ROWS)).toEqual([row("w-1")]);
});

test("what was held is released again by Undo", async () => {
  const calls = serve([
    [/^POST .*\/workloads\/hold\//, { body: { changed: [ROWS[0]], skipped: [] } }],
    [/^POST .*\/workloads\/release\//, { body: { changed: [ROWS[0]], skipped: [] } }],
  ]);
  const { user, undo } = await holdOne();
  await user.click(undo);
  await waitFor(() => expect(calls.at(-1)?.address).toContain("/workloads/release/"));
  expect(calls.at(-1)?.body).toEqual({ workloads: [{ namespace: "a", name: "w-1" }] });
});

const HELD: [RegExp, Answer] = [/^POST .*\/workloads\/hold\//, { body: { changed: [ROWS[0]], skipped: [] } }];

test("an undo that changed only a part is told as the action is", async () => {
  const skipped = [{ ...row("w-1"), reason: "Conflict", message: "It has ended." }];
  serve([HELD, [/^POST .*\/workloads\/release\//, { body: { changed: [], skipped } }]]);
  const { user, undo } = await holdOne();
  await user.click(undo);
  const result = await screen.findByRole("dialog", { name: "Release" });
  expect(within(result).getByText(/: 0 of 1 workload$/)).toBeTruthy();
  expect(within(result).getByRole("region", { name: "1 skipped" }).textContent).toContain(
    "It has ended.a/w-1",
  );
});

test("after the page is left, a notification says why an undo was refused", async () => {
  serve([HELD, [/release/, { status: 403, body: { reason: "PermissionDenied", message: "You may not." } }]]);
  const { user, undo } = await holdOne();
  await user.click(screen.getByRole("button", { name: "leave" }));
  await user.click(undo);
  expect(await screen.findByText("Undo failed: On hold")).toBeTruthy();
  expect(screen.getByText("1 workload: 0 changed. You may not.")).toBeTruthy();
});

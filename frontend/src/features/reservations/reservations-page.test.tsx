import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { ReservationWindow } from "@/api/hardware/reservations";
import { renderPart, serve } from "@/test-render";
import { ReservationsPage } from "./reservations-page";
import { reservationsOf } from "./windows";

const HOUR_MS = 3_600_000;
const at = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString();

const FIRMWARE: ReservationWindow = {
  reservation: "firmware",
  starts_at: at(-1),
  ends_at: at(3),
  state: "Busy",
  recurrence: "None",
  maintenance: true,
  if_busy: "Wait",
  comment: "New firmware",
  allowed: { namespaces: [], local_queues: [], cluster_queues: [], users: [] },
  nodes: ["n1", "n2", "n3", "n4"],
  busy: [{ namespace: "team-b", name: "train", node_count: 1 }],
  busy_count: 2,
};
const NIGHTLY: ReservationWindow = {
  ...FIRMWARE,
  reservation: "nightly",
  starts_at: at(30),
  ends_at: at(32),
  state: "Planned",
  recurrence: "Daily",
  maintenance: false,
  if_busy: "Evict",
  comment: "",
  allowed: { namespaces: ["finance"], local_queues: ["team/main"], cluster_queues: [], users: ["ada"] },
  nodes: ["n5"],
  busy: [],
  busy_count: 0,
};

async function show(windows: ReservationWindow[], onPeriod = vi.fn()) {
  const calls = serve([
    [/^GET .*reservation-calendar/, { body: { since: at(0), until: at(168), truncated: false, windows } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <ReservationsPage
        period={{}}
        onPeriod={onPeriod}
        actions={null}
        buttons={(name) => <button type="button">{name}!</button>}
      />
    </ClusterProvider>,
  );
  return calls;
}

test("each reservation has a row with its present window, nodes, readers and the workloads that keep it busy", async () => {
  await show([FIRMWARE, NIGHTLY]);
  const [, firmware, nightly] = await screen.findAllByRole("row");
  const first = within(firmware as HTMLElement);
  expect(first.getByText("New firmware")).toBeDefined();
  expect(first.getByText("Busy")).toBeDefined();
  expect(first.getByText(/2 workloads still run/).textContent).toBe(
    "2 workloads still run: team-b/train and 1 more",
  );
  expect(first.getByText("maintenance")).toBeDefined();
  expect(first.getByText(/and 1 more/, { selector: "span" })).toBeDefined();
  const second = within(nightly as HTMLElement);
  expect(second.getByText("Planned")).toBeDefined();
  expect(second.getByText(/each day/)).toBeDefined();
  for (const text of ["namespace finance", "LocalQueue team/main", "user ada", "evicts", "nightly!"])
    expect(second.getByText(text)).toBeDefined();
  expect(screen.getByRole("img", { name: "Windows of the reservations" })).toBeDefined();
});

test("a reader who may not know for whom nodes are kept free is told that they are", async () => {
  await show([{ ...NIGHTLY, allowed: null }]);
  expect(await screen.findByText("certain workloads")).toBeDefined();
});

test("the period is asked for and changed", async () => {
  const onPeriod = vi.fn();
  const calls = await show([], onPeriod);
  expect(await screen.findByText("No reservations on these days")).toBeDefined();
  const asked = new URL(calls[0]?.address ?? "", "http://localhost").searchParams;
  const length = Date.parse(asked.get("until") ?? "") - Date.parse(asked.get("since") ?? "");
  expect(Math.round(length / HOUR_MS / 24)).toBe(7);
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Later" }));
  expect(onPeriod).toHaveBeenLastCalledWith({ from: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) });
  await user.click(screen.getByText("28 days"));
  expect(onPeriod).toHaveBeenLastCalledWith({ days: 28 });
});

test("the present window is the open or next one, else the last", () => {
  const ended = { ...NIGHTLY, state: "Ended" as const };
  const [found] = reservationsOf([ended, NIGHTLY]);
  expect(found?.present).toBe(NIGHTLY);
  expect(reservationsOf([ended, { ...ended, comment: "last" }])[0]?.present.comment).toBe("last");
});

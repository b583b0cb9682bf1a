import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { Manifest } from "@/lib/manifest/object";
import { renderPart, serve } from "@/test-render";
import { draftOf, ReservationForm } from "./reservation-form";

const MANIFEST: Manifest = {
  apiVersion: "kueueweb.io/v1",
  kind: "Reservation",
  metadata: { name: "firmware" },
  spec: {
    start: "2026-12-01T08:00:00Z",
    end: "2026-12-01T12:00:00Z",
    nodes: { labels: { rack: "r1" } },
    allowed: { namespaces: ["finance"] },
  },
};

const PREVIEW = {
  window: { starts_at: "2026-12-01T08:00:00Z", ends_at: "2026-12-01T12:00:00Z" },
  nodes: ["n1", "n2"],
  holders: [
    {
      namespace: "team-b",
      name: "train",
      cluster_queue: "gpu",
      nodes: ["n1"],
      ends_at: null,
      evicted: false,
    },
  ],
  holder_count: 1,
  waiting: { without_limit: 2, too_long: 1 },
};

test("the form says which workloads would keep the nodes busy, and writes times in UTC", async () => {
  const calls = serve([[/^POST .*reservation-calendar\/preview/, { body: PREVIEW }]]);
  const onChange = vi.fn();
  await renderPart(
    <ClusterProvider cluster="default">
      <ReservationForm manifest={MANIFEST} faults={new Map()} isNew onChange={onChange} />
    </ClusterProvider>,
  );
  expect(await screen.findByText(/^2 nodes, /)).toBeDefined();
  expect(screen.getByText(/1 workload may still use the nodes at the start/)).toBeDefined();
  expect(screen.getByText(/3 waiting workloads could not start on these nodes now/)).toBeDefined();
  expect(calls[0]?.body).toMatchObject({ nodes: { names: [], labels: { rack: "r1" } }, if_busy: "Wait" });
  const start = screen.getByLabelText(/^Start/);
  await userEvent.setup().clear(start);
  expect(onChange).toHaveBeenLastCalledWith(
    expect.objectContaining({ spec: expect.objectContaining({ start: "" }) }),
  );
});

test("a draft without nodes or times is not tried", () => {
  expect(draftOf(MANIFEST)?.allowed?.namespaces).toEqual(["finance"]);
  expect(
    draftOf({ ...MANIFEST, spec: { start: "2026-12-01T08:00:00Z", end: "2026-12-01T12:00:00Z" } }),
  ).toBeNull();
  expect(draftOf({ ...MANIFEST, spec: { nodes: { names: ["n1"] } } })).toBeNull();
});

test("a draft has the number of nodes and the end of the recurrence", () => {
  const times = { start: "2026-12-01T08:00:00Z", end: "2026-12-01T12:00:00Z", until: "2027-01-01T00:00:00Z" };
  const spec = { ...times, recurrence: "Daily", nodes: { count: 4 } };
  const draft = draftOf({ ...MANIFEST, spec });
  expect(draft?.nodes).toEqual({ names: [], labels: {}, count: 4 });
  expect(draft?.until).toBe("2027-01-01T00:00:00Z");
});

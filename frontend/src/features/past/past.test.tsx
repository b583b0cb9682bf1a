import { QueryClient, useQuery } from "@tanstack/react-query";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { beforeEach, expect, it } from "vitest";
import { ApiError } from "@/api/client";
import { PastClusterProvider, useCluster, useLive } from "@/api/cluster";
import { nodesQuery } from "@/api/nodes";
import { PastMoment, useIsPast } from "@/api/past/past";
import { forgetPast, pastQueries } from "@/api/past/queries";
import { isClusterAdmin, maySubmit, sessionQuery } from "@/api/session";
import { parseMoment, showMoment, shownMoment } from "@/lib/moment";
import { renderPart, serve } from "@/test-render";
import { placeOf } from "./choose-moment";
import { LookBack } from "./look-back";
import { MomentBanner } from "./moment-banner";

const AT = "2026-11-29T09:05:00.000Z";
const TAKEN = ["2026-11-29T08:45:00Z", "2026-11-29T09:00:00Z", "2026-11-29T09:15:00Z"];
const FIGURES = { totals: {}, cluster_queues: { main: {} }, cohorts: {}, devices: {} };
const SESSION = {
  authenticated: true,
  user: { username: "alice", is_cluster_admin: true },
  clusters: [],
  roles: [{ role: "admin", namespace: "team", cluster: null }],
};

beforeEach(() => showMoment(null));

function Seen() {
  const queues = useLive((live) => live.data?.cluster_queues);
  return (
    <p>
      {Object.keys(queues ?? {}).join()} {useIsPast() ? "past" : "present"} {shownMoment()}
    </p>
  );
}

it("shows the figures of the moment, and asks for it", async () => {
  const calls = serve([
    [/figures/, { body: FIGURES }],
    [/checkpoints/, { body: { taken_at: TAKEN } }],
    [/session/, { body: SESSION }],
  ]);
  await renderPart(
    <PastMoment cluster="east" at={AT}>
      <PastClusterProvider cluster="east" at={AT}>
        <Seen />
        <MomentBanner cluster="east" at={AT} />
      </PastClusterProvider>
    </PastMoment>,
  );
  expect(await screen.findByText(`main past ${AT}`)).toBeTruthy();
  expect(await screen.findByText(/^The last checkpoint before/)).toBeTruthy();
  const asked = calls.find(({ address }) => address.includes("figures"));
  expect(asked?.address).toContain(`at=${encodeURIComponent(AT)}`);
  expect(calls.find(({ address }) => address.includes("session"))?.address).not.toContain("at=");
});

function Stepping() {
  const [at, setAt] = useState(AT);
  return (
    <>
      <button type="button" onClick={() => setAt(TAKEN[0] ?? AT)}>
        Earlier
      </button>
      <PastMoment key={at} cluster="east" at={at}>
        <PastClusterProvider cluster="east" at={at}>
          <Nodes />
        </PastClusterProvider>
      </PastMoment>
    </>
  );
}

function Nodes() {
  return <p>{useQuery(nodesQuery(useCluster())).data?.length ?? "…"} nodes</p>;
}

it("asks for the new moment from the first request on when it steps from one to another", async () => {
  const calls = serve([
    [/figures/, { body: FIGURES }],
    [/nodes/, { body: { results: [], next: null } }],
    [/session/, { body: SESSION }],
  ]);
  await renderPart(<Stepping />);
  await screen.findByText("0 nodes");
  await userEvent.click(screen.getByRole("button", { name: "Earlier" }));
  await waitFor(() => expect(calls.filter(({ address }) => address.includes("/nodes/"))).toHaveLength(2));
  const asked = calls.filter(({ address }) => address.includes("/nodes/")).map(({ address }) => address);
  expect(asked.map((address) => new URL(address, "http://here").searchParams.get("at"))).toEqual([
    AT,
    TAKEN[0],
  ]);
});

it("asks again while an explanation is being found", async () => {
  let asked = 0;
  const past = pastQueries(new QueryClient(), "east explained");
  const found = await past.fetchQuery({
    queryKey: ["explained"],
    queryFn: async () => {
      asked += 1;
      if (asked < 3) throw new ApiError(503, "StillExplaining", "Ask again.");
      return "why";
    },
    retryDelay: 1,
  });
  expect([found, asked]).toEqual(["why", 3]);
});

it("offers nothing to change, and forgets what another user saw", async () => {
  serve([
    [/figures/, { body: FIGURES }],
    [/session/, { body: SESSION }],
  ]);
  const present = new QueryClient();
  const past = pastQueries(present, "east");
  expect(pastQueries(present, "east")).toBe(past);
  const session = await past.fetchQuery(sessionQuery());
  expect([isClusterAdmin(session), maySubmit(session, "team")]).toEqual([false, false]);
  const now = await present.fetchQuery(sessionQuery());
  expect([isClusterAdmin(now), maySubmit(now, "team")]).toEqual([true, true]);
  forgetPast();
  expect(pastQueries(present, "east")).not.toBe(past);
});

it("refuses a time before the earliest checkpoint", async () => {
  serve([[/checkpoints/, { body: { taken_at: TAKEN } }]]);
  await renderPart(<LookBack cluster="east" at={AT} />);
  await userEvent.click(screen.getByRole("button", { name: "Look back" }));
  const field = await screen.findByLabelText(/^Time/);
  await userEvent.clear(field);
  await userEvent.type(field, "2020-01-01T00:00");
  expect(await screen.findByText(/^The earliest checkpoint is from/)).toBeTruthy();
  await waitFor(() => expect(screen.getByRole("button", { name: "Show" })).toHaveProperty("disabled", true));
});

it("takes the minute of the earliest checkpoint", async () => {
  serve([[/checkpoints/, { body: { taken_at: ["2026-11-29T09:05:40Z"] } }]]);
  await renderPart(<LookBack cluster="east" at={AT} />);
  await userEvent.click(screen.getByRole("button", { name: "Look back" }));
  await screen.findByLabelText(/^Time/);
  await waitFor(() => expect(screen.getByRole("button", { name: "Show" })).toHaveProperty("disabled", false));
});

it("finds the checkpoint of a moment", () => {
  const taken = TAKEN.map((at) => Date.parse(at));
  expect(placeOf(taken, Date.parse(AT))).toBe(1);
  expect(placeOf(taken, Date.parse("2026-11-29T08:44:59Z"))).toBe(-1);
});

it("reads the moment of an address, and nothing that is none", () => {
  expect(parseMoment({ at: "2026-11-29T10:05:00+01:00" })).toEqual({ at: AT });
  expect(parseMoment({ at: "noon" })).toEqual({});
  expect(parseMoment({})).toEqual({});
});

import { screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { LiveData, Session } from "@/api/types";
import { showMoment } from "@/lib/moment";
import { renderPart, serve } from "@/test-render";
import { deviceEntries, matches, nameIn, pageEntries, queueEntries, useFound } from "./find";
import { pagesOf } from "./pages";

const session = (admin: boolean) => ({ user: { is_cluster_admin: admin }, roles: [] }) as unknown as Session;

afterEach(() => showMoment(null));

test("each page has a key of its own, and readers find only pages that they may open", () => {
  const all = pagesOf(session(true), true);
  expect(new Set(all.map(({ key }) => key)).size).toBe(all.length);
  const found = pageEntries(pagesOf(session(false), false)).map(({ label }) => label);
  expect(found).toContain("Notifications");
  expect(found).not.toContain("Audit");
});

test("each word of the text has to be in an entry", () => {
  const queues = queueEntries({
    cluster_queues: { research: { pending: 2, inadmissible: 1, cohort: "ai" } },
    cohorts: { ai: {} },
  } as unknown as LiveData);
  expect(queues.map(({ label, note }) => `${label}: ${note}`)).toEqual([
    "research: ClusterQueue, 3 waiting",
    "ai: Cohort",
  ]);
  const [research] = queues;
  if (research === undefined) throw new Error("no queue");
  expect(matches(research, "Quota ai")).toBe(true);
  expect(matches(research, "quota other")).toBe(false);
});

test("the name is found behind the word of an action", () => {
  expect(nameIn("drain gpu-node-03")).toBe("gpu-node-03");
  expect(nameIn("who holds GPU-0bc0")).toBe("GPU-0bc0");
  expect(nameIn("drainage")).toBe("drainage");
});

test("a device is found by a part of its uuid, and not by one letter", () => {
  const devices = { "GPU-0bc0": { node: "n1", index: 3 } } as unknown as LiveData["devices"];
  expect(deviceEntries(devices, "0BC0")[0]?.note).toBe("device 3 of n1");
  expect(deviceEntries(devices, "G")).toEqual([]);
});

function Labels() {
  const { groups } = useFound(session(true), [], "train");
  return groups.flatMap(({ entries }) => entries).map(({ label }) => <p key={label}>{label}</p>);
}

test("workloads of the past are found, although its flows and users are not known", async () => {
  showMoment("2026-11-01T00:00:00.000Z");
  const found = { cluster: "default", namespace: "team", name: "train-1", state: "Pending" };
  serve([
    [/^GET .*workloads/, { body: { results: [found], next: null } }],
    [/^GET .*nodes/, { body: { results: [], next: null } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <Labels />
    </ClusterProvider>,
  );
  expect(await screen.findByText("team/train-1")).toBeDefined();
});

import { afterEach, expect, it } from "vitest";
import { showMoment } from "@/lib/moment";
import { atMoment, presentOnly } from "./requests";

const AT = "2026-11-29T09:05:00.000Z";
const asked = (path: string, method = "GET") =>
  new URL(atMoment(new Request(`http://here/api/v1/${path}`, { method })).url).searchParams.get("at");

afterEach(() => showMoment(null));

it("asks for the moment where an address has a past", () => {
  showMoment(AT);
  for (const path of [
    "cohorts/tree/",
    "cluster-queues/main/",
    "local-queues/team/a/",
    "workloads/?search=a",
    "workloads/counts/",
    "workloads/team/w/",
    "workloads/team/w/explanation/",
    "nodes/n1/",
    "devices/GPU-0/",
  ]) {
    expect(asked(path), path).toBe(AT);
  }
});

it("asks for the present elsewhere, for a write, and without a moment", () => {
  expect(asked("workloads/")).toBe(null);
  showMoment(AT);
  for (const path of ["session/", "decisions/", "workloads/team/w/events/", "checkpoints/"]) {
    expect(asked(path), path).toBe(null);
  }
  expect(asked("workloads/", "POST")).toBe(null);
});

it("does not mix figures of now with rows of then", () => {
  const of = (path: string) => presentOnly(new Request(`http://here/api/v1/${path}`));
  expect(of("device-usage/")).toBe(null);
  showMoment(AT);
  expect(of("device-usage/?cluster=a")).not.toBe(null);
  for (const path of [
    "workloads/team/w/moves/",
    "cluster-queues/main/user-limits/",
    "manifests/workload/team/w/?format=yaml",
    "reservation-calendar/",
  ])
    expect(of(path), path).not.toBe(null);
  for (const path of [
    "workloads/",
    "session/",
    "workloads/team/w/events/",
    "decisions/?workload=a/b",
    "history/",
  ])
    expect(of(path), path).toBe(null);
  expect(presentOnly(new Request("http://here/api/v1/auth/logout/", { method: "POST" }))).toBe(null);
});

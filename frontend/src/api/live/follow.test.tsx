import { useInfiniteQuery } from "@tanstack/react-query";
import { act, screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { LiveFrame, Workload } from "@/api/types";
import { workloadsQuery } from "@/api/workloads";
import { type Answer, renderPart, serve } from "@/test-render";
import { withRows } from "./follow";
import { EMPTY_LIVE_DATA } from "./live-data";

function row(id: number, status: Workload["status"] = "Pending"): Workload {
  return { id, uid: `uid-${id}`, namespace: "a", name: `w-${id}`, status } as Workload;
}

function pagesOf(...pages: number[][]) {
  return pages.map((ids, place) => ({
    results: ids.map((id) => row(id)),
    next: place < pages.length - 1 ? "cursor" : null,
  }));
}

const shown = (pages: { results: Workload[] }[]) =>
  pages.map(({ results }) => results.map(({ id, status }) => `${id} ${status}`));

const names = (...ids: number[]) => new Set(ids.map((id) => `a/w-${id}`));

describe("named rows", () => {
  test("are replaced where they stand, and pages without them stay the same", () => {
    const pages = pagesOf([9, 8], [5, 4]);
    const found = withRows(pages, names(4), [row(4, "Admitted")], false);
    expect(shown(found.pages)).toEqual([
      ["9 Pending", "8 Pending"],
      ["5 Pending", "4 Admitted"],
    ]);
    expect(found.complete).toBe(true);
    expect(found.pages[0]).toBe(pages[0]);
  });

  test("leave the list that has them no longer", () => {
    expect(shown(withRows(pagesOf([9, 8]), names(9, 7), [], true).pages)).toEqual([["8 Pending"]]);
  });

  test("come in by their age where the newest are first", () => {
    const found = withRows(
      pagesOf([9, 7], [5, 3]),
      names(10, 8, 6, 2),
      [row(10), row(8), row(6), row(2)],
      true,
    );
    expect(found.pages.map(({ results }) => results.map(({ id }) => id))).toEqual([
      [10, 9, 8, 7],
      [6, 5, 3, 2],
    ]);
    expect(found.complete).toBe(true);
  });

  test("behind the last row that is loaded come with their page", () => {
    const [first] = pagesOf([9, 7], [5]);
    const found = withRows(first === undefined ? [] : [first], names(6), [row(6)], true);
    expect(found.pages.map(({ results }) => results.map(({ id }) => id))).toEqual([[9, 7]]);
  });

  test("cannot be placed in another order", () => {
    const found = withRows(pagesOf([9, 7]), names(8), [row(8)], false);
    expect(found.complete).toBe(false);
    expect(found.pages.map(({ results }) => results.length)).toEqual([2]);
  });

  test("of a name that was given again are the new workload's", () => {
    const again = { ...row(12), name: "w-9" };
    const found = withRows(pagesOf([9, 8]), names(9), [again], true);
    expect(found.pages.map(({ results }) => results.map(({ id }) => id))).toEqual([[12, 8]]);
  });
});

class Socket {
  static last: Socket | undefined;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  constructor() {
    Socket.last = this;
  }
  send(): void {}
  close(): void {}
}

function receive(frame: Partial<LiveFrame>): void {
  const full = { cluster: "default", epoch: 1, time: new Date().toISOString(), ...frame };
  act(() => Socket.last?.onmessage?.({ data: JSON.stringify(full) }));
}

function List() {
  const { data } = useInfiniteQuery(workloadsQuery("default", { state: "Pending" }));
  const rows = data?.pages.flatMap((page) => page.results) ?? [];
  return <p>{rows.map(({ name, reason }) => `${name} ${reason}`).join(", ")}</p>;
}

describe("a list on screen", () => {
  beforeEach(() => {
    vi.stubGlobal("WebSocket", Socket);
  });

  test("shows what became of the workloads that a delta names, before it is read again", async () => {
    const list = [2, 1].map((id) => ({ ...row(id), reason: "Waits" }));
    const whole: Answer = { body: { results: list, next: null } };
    const calls = serve([
      [/names=/, { body: { results: [{ ...row(2), reason: "Preempted" }], next: null } }],
      [/^GET .*\/workloads\/\?/, whole],
    ]);
    await renderPart(
      <ClusterProvider cluster="default">
        <List />
      </ClusterProvider>,
    );
    expect(await screen.findByText("w-2 Waits, w-1 Waits")).toBeTruthy();
    whole.status = 500;
    receive({ type: "snapshot", sequence: 1, data: EMPTY_LIVE_DATA });
    await waitFor(() => expect(calls).toHaveLength(2));
    receive({ type: "delta", sequence: 2, data: { workloads: { changed: ["a/w-2", "a/w-1"] } } });
    expect(await screen.findByText("w-2 Preempted")).toBeTruthy();
    const asked = calls.find(({ address }) => address.includes("names="))?.address ?? "";
    expect(new URL(asked, "http://test").searchParams.get("names")).toBe("a/w-2,a/w-1");
    expect(asked).toContain("state=Pending");
  });
});

import { beforeEach, describe, expect, it } from "vitest";
import type { LiveClusterQueue, LiveData, LiveFrame } from "@/api/types";
import { LiveConnection, type LiveEnvironment, type LiveSocket, STALE_AFTER_MS } from "./live";
import { applyDelta, EMPTY_LIVE_DATA, hasMoved } from "./live-data";

const START = Date.parse("2026-11-20T10:00:00Z");

class FakeSocket implements LiveSocket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  readonly sent: unknown[] = [];
  closed = false;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    this.closed = true;
  }
}

/** Time that moves only when told; sockets and paints that wait for the test. */
class FakeEnvironment implements LiveEnvironment {
  readonly sockets: FakeSocket[] = [];
  private readonly timers = new Map<number, { due: number; callback: () => void }>();
  private paints: (() => void)[] = [];
  private clock = START;
  private lastTimer = 0;

  openSocket(): FakeSocket {
    const socket = new FakeSocket();
    this.sockets.push(socket);
    return socket;
  }
  now(): number {
    return this.clock;
  }
  setTimer(callback: () => void, ms: number): number {
    this.lastTimer += 1;
    this.timers.set(this.lastTimer, { due: this.clock + ms, callback });
    return this.lastTimer;
  }
  clearTimer(timer: number): void {
    this.timers.delete(timer);
  }
  schedule(callback: () => void): void {
    this.paints.push(callback);
  }
  random(): number {
    return 0.5;
  }
  /** Lets time pass and runs the timers that come due, in order. */
  advance(ms: number): void {
    const until = this.clock + ms;
    for (;;) {
      const next = [...this.timers]
        .filter(([, timer]) => timer.due <= until)
        .sort((a, b) => a[1].due - b[1].due)[0];
      if (next === undefined) break;
      this.timers.delete(next[0]);
      this.clock = next[1].due;
      next[1].callback();
    }
    this.clock = until;
  }
  /** Lets time pass while the page can run nothing: timers come late. */
  freeze(ms: number): void {
    this.clock += ms;
    for (const [number, timer] of [...this.timers].filter(([, each]) => each.due <= this.clock)) {
      this.timers.delete(number);
      timer.callback();
    }
  }
  paint(): number {
    const due = this.paints;
    this.paints = [];
    for (const callback of due) callback();
    return due.length;
  }
  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error("no socket was opened");
    return socket;
  }
}

const QUEUE = { cohort: "all", active: true, reason: "Ready", message: "" };

function queue(pending: number): LiveClusterQueue {
  return { ...QUEUE, pending, inadmissible: 0, reserving: 0, admitted: 0, weighted_share: 0, usage: [] };
}

function liveData(queues: Record<string, LiveClusterQueue>): LiveData {
  return { ...EMPTY_LIVE_DATA, cluster_queues: queues };
}

let environment: FakeEnvironment;
let live: LiveConnection;

/** Sends a frame whose time is the environment's, unless another is given. */
function receive(frame: Record<string, unknown>): void {
  const time = new Date(environment.now()).toISOString();
  const full = { cluster: "default", epoch: 3, time, ...frame } as unknown as LiveFrame;
  environment.socket.onmessage?.({ data: JSON.stringify(full) });
}

function snapshot(sequence: number, queues: Record<string, LiveClusterQueue>, epoch = 3): void {
  receive({ type: "snapshot", sequence, epoch, data: liveData(queues) });
}

beforeEach(() => {
  environment = new FakeEnvironment();
  live = new LiveConnection("ws://test/ws/live/", environment);
  live.start();
});

describe("frames", () => {
  it("a snapshot replaces everything", () => {
    snapshot(1, { a: queue(1), b: queue(2) });
    snapshot(2, { b: queue(5) });
    expect(live.getState().data?.cluster_queues).toEqual({ b: queue(5) });
    expect(live.getState()).toMatchObject({ status: "live", sequence: 2, epoch: 3, staleSince: null });
  });

  it("a delta replaces whole entries, removes what is gone and keeps the rest as it is", () => {
    snapshot(1, { a: queue(1), b: queue(2), c: queue(3) });
    const before = live.getState().data;
    receive({
      type: "delta",
      sequence: 2,
      data: { cluster_queues: { b: queue(9) }, removed: { cluster_queues: ["c"] } },
    });
    const after = live.getState().data;
    expect(after?.cluster_queues).toEqual({ a: queue(1), b: queue(9) });
    expect(after?.cluster_queues.a).toBe(before?.cluster_queues.a);
    expect(after?.devices).toBe(before?.devices);
  });

  it("a gap asks to resume and leaves deltas aside until the snapshot", () => {
    snapshot(1, { a: queue(1) });
    receive({ type: "delta", sequence: 3, data: { cluster_queues: { a: queue(3) } } });
    receive({ type: "delta", sequence: 4, data: { cluster_queues: { a: queue(4) } } });
    expect(environment.socket.sent).toEqual([{ type: "resume", epoch: 3, sequence: 1 }]);
    expect(live.getState().data?.cluster_queues.a).toEqual(queue(1));
    snapshot(4, { a: queue(4) });
    receive({ type: "delta", sequence: 5, data: { cluster_queues: { a: queue(5) } } });
    expect(live.getState().data?.cluster_queues.a).toEqual(queue(5));
  });

  it("a delta that holds several is no gap when it starts from what we have", () => {
    snapshot(1, { a: queue(1) });
    receive({ type: "delta", since: 1, sequence: 4, data: { cluster_queues: { a: queue(4) } } });
    expect(environment.socket.sent).toEqual([]);
    expect(live.getState()).toMatchObject({ sequence: 4 });
  });

  it("another epoch asks to resume: another scheduler leads", () => {
    snapshot(7, { a: queue(1) });
    receive({ type: "delta", epoch: 4, sequence: 8, data: { cluster_queues: { a: queue(2) } } });
    expect(environment.socket.sent).toEqual([{ type: "resume", epoch: 3, sequence: 7 }]);
    snapshot(1, { a: queue(6) }, 4);
    expect(live.getState()).toMatchObject({ epoch: 4, sequence: 1 });
  });

  it("a repeated delta changes nothing", () => {
    snapshot(5, { a: queue(5) });
    receive({ type: "delta", sequence: 5, data: { cluster_queues: { a: queue(1) } } });
    expect(live.getState().data?.cluster_queues.a).toEqual(queue(5));
    expect(environment.socket.sent).toEqual([]);
  });

  it("a heartbeat that is ahead of us means that we missed something", () => {
    snapshot(5, {});
    receive({ type: "heartbeat", sequence: 6 });
    expect(environment.socket.sent).toEqual([{ type: "resume", epoch: 3, sequence: 5 }]);
  });

  it("the workloads that frames named are handed out once", () => {
    snapshot(1, {});
    expect(live.takeChanged()).toEqual({ names: new Set(), more: true });
    receive({ type: "delta", sequence: 2, data: { workloads: { changed: ["a/x", "a/y"] } } });
    receive({ type: "delta", sequence: 3, data: { workloads: { changed: ["a/y"] } } });
    expect(live.takeChanged()).toEqual({ names: new Set(["a/x", "a/y"]), more: false });
    expect(live.takeChanged()).toEqual({ names: new Set(), more: false });
    receive({ type: "delta", sequence: 4, data: { workloads: { changed: [], more: true } } });
    expect(live.takeChanged().more).toBe(true);
  });

  it("a text that is no frame is left aside", () => {
    environment.socket.onmessage?.({ data: "not json" });
    environment.socket.onmessage?.({ data: '{"type":"delta"}' });
    expect(live.getState()).toMatchObject({ status: "connecting", data: null });
  });
});

describe("freshness", () => {
  it("stays live as long as heartbeats come", () => {
    snapshot(1, {});
    for (let beat = 0; beat < 10; beat += 1) {
      environment.advance(5_000);
      receive({ type: "heartbeat", sequence: 1 });
    }
    expect(live.getState().status).toBe("live");
    expect(environment.sockets).toHaveLength(1);
  });

  it("turns stale 12 s after the last frame, says since when, and opens another socket", () => {
    snapshot(1, {});
    const silent = environment.socket;
    environment.advance(STALE_AFTER_MS - 1);
    expect(live.getState().status).toBe("live");
    environment.advance(1);
    expect(live.getState()).toMatchObject({ status: "stale", staleSince: START });
    expect(silent.closed).toBe(true);
    environment.advance(500);
    expect(environment.sockets).toHaveLength(2);
  });

  it("reads what came while the page was busy before it calls its numbers stale", () => {
    snapshot(1, {});
    environment.freeze(STALE_AFTER_MS + 5_000);
    expect(live.getState().status).toBe("live");
    receive({ type: "heartbeat", sequence: 1 });
    environment.advance(2_000);
    expect(live.getState().status).toBe("live");
    expect(environment.sockets).toHaveLength(1);
  });

  it("turns stale a second after the page woke up if nothing had come", () => {
    snapshot(1, {});
    environment.freeze(STALE_AFTER_MS + 5_000);
    environment.advance(1_000);
    expect(live.getState()).toMatchObject({ status: "stale", staleSince: START });
  });

  it("turns stale when frames come but the scheduler's clock stands", () => {
    snapshot(1, {});
    const time = new Date(START).toISOString();
    for (let beat = 0; beat < 3; beat += 1) {
      environment.advance(5_000);
      receive({ type: "heartbeat", sequence: 1, time });
    }
    expect(live.getState()).toMatchObject({ status: "stale", staleSince: START });
  });

  it("does not call an old snapshot fresh after a reconnect", () => {
    snapshot(1, { a: queue(1) });
    const time = new Date(START).toISOString();
    environment.advance(STALE_AFTER_MS + 500);
    receive({ type: "snapshot", sequence: 1, time, data: liveData({ a: queue(1) }) });
    expect(live.getState().status).toBe("stale");
    receive({ type: "heartbeat", sequence: 1 });
    expect(live.getState()).toMatchObject({ status: "live", staleSince: null });
  });

  it("calls a first snapshot stale that the scheduler said long ago, until it says more", () => {
    receive({ type: "snapshot", sequence: 1, age_seconds: 39, data: liveData({ a: queue(1) }) });
    expect(live.getState()).toMatchObject({ status: "stale", staleSince: START - 39_000 });
    receive({ type: "heartbeat", sequence: 1, time: new Date(START).toISOString() });
    expect(live.getState().status).toBe("stale");
    environment.advance(1_000);
    receive({ type: "heartbeat", sequence: 1 });
    expect(live.getState()).toMatchObject({ status: "live", staleSince: null });
  });

  it("counts a young snapshot's age", () => {
    receive({ type: "snapshot", sequence: 1, age_seconds: 5, data: liveData({ a: queue(1) }) });
    expect(live.getState().status).toBe("live");
    environment.advance(STALE_AFTER_MS - 5_000);
    expect(live.getState()).toMatchObject({ status: "stale", staleSince: START - 5_000 });
  });

  it("looks at the clock when a hidden tab comes back", () => {
    snapshot(1, {});
    live.checkFreshness();
    expect(live.getState().status).toBe("live");
  });
});

describe("reconnecting", () => {
  it("waits longer after each failure, and asks to resume from what it has", () => {
    snapshot(4, {});
    environment.socket.onclose?.({ code: 1006 });
    expect(live.getState()).toMatchObject({ status: "stale", staleSince: START });
    const opened: number[] = [];
    for (const pause of [500, 1_000, 2_000, 4_000]) {
      environment.advance(pause - 1);
      opened.push(environment.sockets.length);
      environment.advance(1);
      opened.push(environment.sockets.length);
      environment.socket.onclose?.({ code: 1006 });
    }
    expect(opened).toEqual([1, 2, 2, 3, 3, 4, 4, 5]);
    environment.advance(8_000);
    environment.socket.onopen?.();
    expect(environment.socket.sent).toEqual([{ type: "resume", epoch: 3, sequence: 4 }]);
    snapshot(9, {});
    expect(live.getState()).toMatchObject({ status: "live", staleSince: null, sequence: 9 });
  });

  it.each([4401, 4403, 4404])("does not knock again where it was refused (%d)", (code) => {
    environment.socket.onclose?.({ code });
    environment.advance(60_000);
    expect(live.getState().status).toBe("refused");
    expect(environment.sockets).toHaveLength(1);
  });

  it("tries at once when told so, but opens no second socket", () => {
    live.reconnectNow();
    expect(environment.sockets).toHaveLength(1);
    environment.socket.onclose?.({ code: 1006 });
    live.reconnectNow();
    expect(environment.sockets).toHaveLength(2);
  });

  it("stop leaves neither socket nor timer", () => {
    snapshot(1, {});
    live.stop();
    environment.advance(60_000);
    expect(environment.sockets).toHaveLength(1);
    expect(environment.socket.closed).toBe(true);
  });
});

describe("painting", () => {
  it("tells its listeners once per paint, however many frames came", () => {
    let told = 0;
    live.subscribe(() => {
      told += 1;
    });
    environment.paint();
    snapshot(1, { a: queue(1) });
    for (let sequence = 2; sequence < 50; sequence += 1) {
      receive({ type: "delta", sequence, data: { cluster_queues: { a: queue(sequence) } } });
    }
    expect(told).toBe(0);
    expect(environment.paint()).toBe(1);
    expect(told).toBe(1);
    expect(live.getState().data?.cluster_queues.a).toEqual(queue(49));
  });
});

describe("history", () => {
  it("notes one point a second and breaks the line where nothing was known", () => {
    snapshot(1, {});
    environment.advance(300);
    snapshot(2, {});
    environment.advance(700);
    snapshot(3, {});
    environment.socket.onclose?.({ code: 1006 });
    const { times, values } = live.getState().history;
    expect(times.map((time) => time - START / 1000)).toEqual([0, 1, 1.5]);
    expect(values.pending).toEqual([0, 0, null]);
  });
});

it("tells movement also where one workload takes the place of another, and none where only a node came", () => {
  const known = { ...EMPTY_LIVE_DATA, cluster_queues: {}, devices: {} };
  expect(hasMoved(null, known)).toBe(true);
  const withNode = applyDelta(known, { totals: { ...known.totals, nodes: 1 } });
  expect(hasMoved(known, withNode)).toBe(false);
  expect(hasMoved(known, applyDelta(known, { totals: { ...known.totals, pending: 1 } }))).toBe(true);
  const device = { "GPU-1": {} } as unknown as typeof known.devices;
  expect(hasMoved(known, applyDelta(known, { devices: device }))).toBe(true);
});

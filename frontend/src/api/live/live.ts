/**
 * The live stream: one websocket per tab, for the cluster on screen.
 *
 * A snapshot replaces what is known, a delta replaces whole entries. Numbers are fresh while the scheduler's clock in the
 * frames moves on; after STALE_AFTER_MS without that, or as soon as the socket is gone, they are stale and say since when.
 * A gap in the sequence or another epoch asks the server to resume, which it answers with a snapshot; until then deltas
 * are left aside, for they do not fit what we hold.
 */

import type { LiveData, LiveFrame } from "@/api/types";
import { applyDelta, parseFrame } from "./live-data";
import { LiveHistory } from "./live-history";

export const STALE_AFTER_MS = 12_000;
/** How long frames that wait in a page that was busy or asleep have to be read, before it calls its numbers stale. */
const CATCH_UP_MS = 1_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 20_000;
/** Close codes of the server that no other try will change: not logged in, no right, no such cluster. */
const REFUSALS = [4401, 4403, 4404];

export type LiveStatus = "connecting" | "live" | "stale" | "refused";

/** The workloads that came, went or changed, as namespace/name; and whether there are more without names. */
export interface ChangedWorkloads {
  names: Set<string>;
  more: boolean;
}

export interface LiveState {
  status: LiveStatus;
  /** Null until the first snapshot. */
  data: LiveData | null;
  /** When the scheduler took these numbers (ISO), null before the first frame. */
  time: string | null;
  epoch: number;
  sequence: number;
  /** When the numbers were last fresh, by our clock in ms since the epoch; null while they are. */
  staleSince: number | null;
  history: LiveHistory;
}

/** The part of a WebSocket that we use. */
export interface LiveSocket {
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface LiveEnvironment {
  openSocket(url: string): LiveSocket;
  now(): number;
  setTimer(callback: () => void, ms: number): number;
  clearTimer(timer: number): void;
  /** Runs the callback before the next paint. */
  schedule(callback: () => void): void;
  /** 0 to 1: spreads the reconnects of many tabs. */
  random(): number;
}

const BROWSER: LiveEnvironment = {
  openSocket: (url) => new WebSocket(url) as unknown as LiveSocket,
  now: () => Date.now(),
  setTimer: (callback, ms) => window.setTimeout(callback, ms),
  clearTimer: (timer) => window.clearTimeout(timer),
  schedule: (callback) => window.requestAnimationFrame(callback),
  random: () => Math.random(),
};

function initialState(): LiveState {
  return {
    status: "connecting",
    data: null,
    time: null,
    epoch: 0,
    sequence: 0,
    staleSince: null,
    history: new LiveHistory(),
  };
}

/** The state of a page that shows figures of the past. */
export function pastState(data: LiveData | null, time: string | null): LiveState {
  return { ...initialState(), data, time, status: data === null ? "connecting" : "live" };
}

export class LiveConnection {
  private state = initialState();
  private changed: ChangedWorkloads = { names: new Set(), more: false };
  private readonly listeners = new Set<() => void>();
  private socket: LiveSocket | null = null;
  private notifying = false;
  private retries = 0;
  private retryTimer: number | null = null;
  private watchdog: number | null = null;
  private lastFresh = 0;
  private resuming = false;
  private stopped = true;

  constructor(
    private readonly url: string,
    private readonly environment: LiveEnvironment = BROWSER,
  ) {}

  readonly getState = (): LiveState => this.state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The changes of all frames since the last call. */
  takeChanged(): ChangedWorkloads {
    const { changed } = this;
    this.changed = { names: new Set(), more: false };
    return changed;
  }

  start(): void {
    if (!this.stopped) return;
    this.stopped = false;
    this.lastFresh = this.environment.now();
    this.connect();
  }

  stop(): void {
    this.stopped = true;
    this.clearTimers();
    this.dropSocket();
  }

  /** Tries at once, for example when the browser is online again; does nothing while a socket is open or opening. */
  reconnectNow(): void {
    if (this.stopped || this.socket !== null) return;
    this.retries = 0;
    this.connect();
  }

  /** Looks at the clock now: timers of a hidden tab come late. */
  checkFreshness(): void {
    if (this.stopped || this.state.status !== "live") return;
    if (this.environment.now() - this.lastFresh >= STALE_AFTER_MS) this.silenceTooLong();
    else this.armWatchdog();
  }

  private connect(): void {
    this.clearTimers();
    this.resuming = false;
    const socket = this.environment.openSocket(this.url);
    this.socket = socket;
    socket.onopen = () => {
      if (this.state.data !== null) this.askResume();
    };
    socket.onmessage = (event) => {
      if (typeof event.data !== "string") return;
      const frame = parseFrame(event.data);
      if (frame !== null) this.receive(frame);
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.closed(event.code);
    };
    this.armWatchdog();
  }

  private receive(frame: LiveFrame): void {
    const { state } = this;
    const sameEpoch = frame.epoch === state.epoch && state.data !== null;
    if (frame.type === "snapshot") {
      this.resuming = false;
      this.retries = 0;
      this.changed.more = true;
      this.accept(frame, frame.data);
    } else if (this.resuming) {
      return;
    } else if (frame.type === "heartbeat") {
      if (sameEpoch && frame.sequence === state.sequence) this.accept(frame, state.data);
      else if (!sameEpoch || frame.sequence > state.sequence) this.askResume();
    } else if (sameEpoch && frame.sequence > state.sequence) {
      const since = frame.since ?? frame.sequence - 1;
      if (since <= state.sequence && state.data !== null) {
        const { changed = [], more = false } = frame.data.workloads ?? {};
        for (const name of changed) this.changed.names.add(name);
        this.changed.more ||= more;
        this.accept(frame, applyDelta(state.data, frame.data));
      } else this.askResume();
    } else if (!sameEpoch) {
      this.askResume();
    }
  }

  private accept(frame: LiveFrame, data: LiveData | null): void {
    const { state } = this;
    const advanced = state.time === null || frame.time > state.time || frame.epoch !== state.epoch;
    if (data !== null) state.history.record(frame.time, data);
    const age = frame.type === "snapshot" ? (frame.age_seconds ?? 0) * 1000 : 0;
    const old = age >= STALE_AFTER_MS;
    if (advanced) {
      this.lastFresh = this.environment.now() - age;
      if (!old) this.armWatchdog(age);
    }
    const fresh = advanced ? !old : state.status === "live";
    this.update({
      data,
      time: frame.time,
      epoch: frame.epoch,
      sequence: frame.sequence,
      ...(fresh ? { status: "live" as const, staleSince: null } : {}),
      ...(advanced && old ? { status: "stale" as const, staleSince: this.lastFresh } : {}),
    });
  }

  private askResume(): void {
    this.resuming = true;
    const { epoch, sequence } = this.state;
    this.socket?.send(JSON.stringify({ type: "resume", epoch, sequence }));
  }

  private closed(code: number): void {
    this.socket = null;
    this.clearTimers();
    if (this.stopped) return;
    if (REFUSALS.includes(code)) {
      this.turnStale("refused");
      return;
    }
    this.turnStale("stale");
    const pause = Math.min(FIRST_RETRY_MS * 2 ** this.retries, MAX_RETRY_MS);
    this.retries += 1;
    this.retryTimer = this.environment.setTimer(
      () => this.connect(),
      pause * (0.75 + 0.5 * this.environment.random()),
    );
  }

  /** The socket may hang without closing: leave it and open another. */
  private silenceTooLong(): void {
    this.dropSocket();
    this.closed(0);
  }

  private turnStale(status: "stale" | "refused"): void {
    if (this.state.status === "live") this.state.history.breakLine();
    this.update({ status, staleSince: this.state.staleSince ?? this.lastFresh });
  }

  private armWatchdog(age = 0): void {
    const due = this.environment.now() + STALE_AFTER_MS - age;
    this.watch(STALE_AFTER_MS - age, () => {
      if (this.environment.now() < due + CATCH_UP_MS) this.silenceTooLong();
      else this.watch(CATCH_UP_MS, () => this.silenceTooLong());
    });
  }

  private watch(ms: number, callback: () => void): void {
    if (this.watchdog !== null) this.environment.clearTimer(this.watchdog);
    this.watchdog = this.environment.setTimer(callback, ms);
  }

  private clearTimers(): void {
    if (this.retryTimer !== null) this.environment.clearTimer(this.retryTimer);
    if (this.watchdog !== null) this.environment.clearTimer(this.watchdog);
    this.retryTimer = null;
    this.watchdog = null;
  }

  private dropSocket(): void {
    const socket = this.socket;
    this.socket = null;
    if (socket === null) return;
    socket.onopen = null;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close();
  }

  private update(change: Partial<LiveState>): void {
    this.state = { ...this.state, ...change };
    if (this.notifying) return;
    this.notifying = true;
    this.environment.schedule(() => {
      this.notifying = false;
      for (const listener of this.listeners) listener();
    });
  }
}

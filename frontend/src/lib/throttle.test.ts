import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { throttle } from "./throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("acts at once, again when the pause is over, for as long as it is asked, and never after it was stopped", () => {
  const act = vi.fn();
  const { ask, stop } = throttle(act, () => 1_000);
  ask();
  expect(act).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(10_000);
  expect(act).toHaveBeenCalledTimes(2);
  act.mockClear();

  ask();
  ask();
  expect(act).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1_000);
  expect(act).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(5_000);
  expect(act).toHaveBeenCalledTimes(2);
  ask();
  expect(act).toHaveBeenCalledTimes(3);
  ask();
  stop();
  vi.advanceTimersByTime(5_000);
  expect(act).toHaveBeenCalledTimes(3);
});

it("pauses as long as it is told to at that time", () => {
  const act = vi.fn();
  let pause = 100;
  const { ask, stop } = throttle(act, () => pause);
  ask();
  pause = 1_000;
  vi.advanceTimersByTime(100);
  expect(act).toHaveBeenCalledTimes(2);
  ask();
  vi.advanceTimersByTime(999);
  expect(act).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(1);
  expect(act).toHaveBeenCalledTimes(3);
  stop();
});

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { throttle } from "./throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("acts at once, again when the pause is over, for as long as it is asked, and never after it was stopped", () => {
  const act = vi.fn();
  const { ask, stop } = throttle(act, 1_000);
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

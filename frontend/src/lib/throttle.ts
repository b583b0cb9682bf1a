/**
 * Does something at most so often: at once when it was quiet before, and once more when the pause is over, for what was
 * not to be seen yet the first time.
 */
export interface Throttle {
  ask: () => void;
  stop: () => void;
}

/** `pauseMs` is asked after each act: what costs more may be done less often. */
export function throttle(act: () => void, pauseMs: () => number): Throttle {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let asked = false;
  const pause = () => {
    timer = setTimeout(() => {
      timer = null;
      if (asked) run();
    }, pauseMs());
  };
  const run = () => {
    asked = false;
    act();
    pause();
  };
  return {
    ask: () => {
      if (timer === null) run();
      asked = true;
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

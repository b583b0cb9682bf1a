/** Does something at most so often: at once when it was quiet before, else when the pause is over. */
export interface Throttle {
  ask: () => void;
  stop: () => void;
}

export function throttle(act: () => void, pauseMs: number): Throttle {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let asked = false;
  const pause = () => {
    timer = setTimeout(() => {
      timer = null;
      if (asked) run();
    }, pauseMs);
  };
  const run = () => {
    asked = false;
    act();
    pause();
  };
  return {
    ask: () => {
      asked = true;
      if (timer === null) run();
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

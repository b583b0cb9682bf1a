import { notifications } from "@mantine/notifications";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// How long `findBy…` and `waitFor` look before they give up: a busy machine draws a page in more than their one second.
configure({ asyncUtilTimeout: 10_000 });

afterEach(() => {
  cleanup();
  // The files of a worker share its modules and its window.
  notifications.clean();
  window.localStorage.clear();
  window.sessionStorage.clear();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

// What jsdom lacks and Mantine asks for.
Object.defineProperty(window, "matchMedia", {
  configurable: true,
  value: (query: string) => ({
    matches: false,
    media: query,
    onchange: null,
    addEventListener: vi.fn(),
    removeEventListener: vi.fn(),
    addListener: vi.fn(),
    removeListener: vi.fn(),
    dispatchEvent: vi.fn(),
  }),
});

class NoResizeObserver implements ResizeObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}
window.ResizeObserver = NoResizeObserver;

// What the size of a growing field follows; jsdom has no fonts.
Object.defineProperty(document, "fonts", { value: new EventTarget(), configurable: true });

// What a list of choices does with the chosen one; jsdom lays nothing out.
Element.prototype.scrollIntoView = () => undefined;

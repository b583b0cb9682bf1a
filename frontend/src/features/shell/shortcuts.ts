/** The keyboard path: g and a letter goes to a page, Ctrl-K finds anything, / searches, ? lists the keys. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import type { Page } from "./pages";

const SEQUENCE_MS = 1_200;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null
  );
}

export interface Shortcuts {
  pages: readonly Page[];
  toggleHelp: () => void;
  toggleFind: () => void;
}

export function useShortcuts({ pages, toggleHelp, toggleFind }: Shortcuts): void {
  const navigate = useNavigate();
  useEffect(() => {
    let wentAt = 0;
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        toggleFind();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const going = event.timeStamp - wentAt < SEQUENCE_MS;
      wentAt = 0;
      const page = going ? pages.find(({ key }) => key === event.key) : undefined;
      if (page !== undefined) void navigate({ to: page.to });
      else if (event.key === "g") wentAt = event.timeStamp;
      else if (event.key === "?") toggleHelp();
      else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("input[type=search]");
        if (search === null) return;
        event.preventDefault();
        search.focus();
        search.select();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [navigate, pages, toggleHelp, toggleFind]);
}

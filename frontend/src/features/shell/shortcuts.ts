/** The keyboard path: g and a letter goes to a page, / searches, ? lists them. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";

const GO = {
  o: "/",
  w: "/workloads",
  q: "/queues",
  g: "/gpus",
  n: "/nodes",
  f: "/flavors",
  d: "/decisions",
} as const;

const SEQUENCE_MS = 1_200;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null
  );
}

export function useShortcuts(toggleHelp: () => void): void {
  const navigate = useNavigate();
  useEffect(() => {
    let wentAt = 0;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const going = event.timeStamp - wentAt < SEQUENCE_MS;
      wentAt = 0;
      if (going && event.key in GO) void navigate({ to: GO[event.key as keyof typeof GO] });
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
  }, [navigate, toggleHelp]);
}

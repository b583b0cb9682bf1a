/** The keyboard path: g and a letter goes to a page, / searches, ? lists them. */
import { t } from "@lingui/core/macro";
import { Group, Kbd, Modal, Stack, Text } from "@mantine/core";
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

const HELP = [
  { keys: ["g", "o"], text: t`Overview` },
  { keys: ["g", "w"], text: t`Workloads` },
  { keys: ["g", "q"], text: t`Queues` },
  { keys: ["g", "g"], text: t`GPUs` },
  { keys: ["g", "n"], text: t`Nodes` },
  { keys: ["g", "f"], text: t`Flavors` },
  { keys: ["g", "d"], text: t`Decisions` },
  { keys: ["/"], text: t`Search in this page` },
  { keys: ["↓", "↑"], text: t`Walk the rows of a table (also j, k)` },
  { keys: ["Enter"], text: t`Open the row` },
  { keys: ["?"], text: t`This list` },
] as const;

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

export function ShortcutsHelp({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title={t`Keyboard shortcuts`} size="sm">
      <Stack gap="xs">
        {HELP.map(({ keys, text }) => (
          <Group key={text} justify="space-between">
            <Text size="sm">{text}</Text>
            <Group gap={4}>
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </Group>
          </Group>
        ))}
      </Stack>
    </Modal>
  );
}

/** The list of the keys; loaded when it is opened. */
import { t } from "@lingui/core/macro";
import { Group, Kbd, Modal, Stack, Text } from "@mantine/core";
import type { Page } from "./pages";

const help = (pages: readonly Page[]) => [
  { keys: ["Ctrl", "K"], text: t`Find workloads, queues, nodes, pages and actions` },
  ...pages.map(({ key, label }) => ({ keys: ["g", key], text: label })),
  { keys: ["/"], text: t`Search in this page` },
  { keys: ["↓", "↑"], text: t`Move through the rows of a table (also j, k)` },
  { keys: ["Enter"], text: t`Open the row` },
  { keys: ["Ctrl", "Enter"], text: t`Open the row in a new tab (also Ctrl-click)` },
  { keys: ["?"], text: t`Show this list` },
];

export function ShortcutsHelp({ pages, onClose }: { pages: readonly Page[]; onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title={t`Keyboard shortcuts`} size="sm">
      <Stack gap="xs">
        {help(pages).map(({ keys, text }) => (
          <Group key={text} justify="space-between" wrap="nowrap">
            <Text size="sm">{text}</Text>
            <Group gap={4} wrap="nowrap">
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

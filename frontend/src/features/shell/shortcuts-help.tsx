/** The list of the keys; read when somebody asks for it. */
import { t } from "@lingui/core/macro";
import { Group, Kbd, Modal, Stack, Text } from "@mantine/core";

const help = () => [
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
];

export function ShortcutsHelp({ onClose }: { onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title={t`Keyboard shortcuts`} size="sm">
      <Stack gap="xs">
        {help().map(({ keys, text }) => (
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

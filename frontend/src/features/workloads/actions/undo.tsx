/** Says that an action is done, with a button that takes it back where another action does. */
import { Trans } from "@lingui/react/macro";
import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ActionKind, actionWords } from "./action-words";

const OPPOSITES: Partial<Record<ActionKind, "hold" | "release">> = { hold: "release", release: "hold" };

const UNDO_MS = 15_000;

export function tellDone(
  kind: ActionKind,
  message: string,
  onUndo: (opposite: "hold" | "release") => void,
): void {
  const opposite = OPPOSITES[kind];
  const id = notifications.show({
    color: "teal",
    title: actionWords()[kind].done,
    ...(opposite === undefined ? {} : { autoClose: UNDO_MS }),
    message:
      opposite === undefined ? (
        message
      ) : (
        <Group justify="space-between" gap="xs">
          {message}
          <Button
            size="compact-xs"
            variant="light"
            onClick={() => {
              notifications.hide(id);
              onUndo(opposite);
            }}
          >
            <Trans>Undo</Trans>
          </Button>
        </Group>
      ),
  });
}

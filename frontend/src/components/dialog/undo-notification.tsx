/** A notification that something is done, with a button that takes it back where that is possible. */
import { Trans } from "@lingui/react/macro";
import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";

const UNDO_MS = 15_000;

export function tellWithUndo(title: string, message: string, onUndo: (() => void) | undefined): void {
  const id = notifications.show({
    color: "teal",
    title,
    ...(onUndo === undefined ? {} : { autoClose: UNDO_MS }),
    message:
      onUndo === undefined ? (
        message
      ) : (
        <Group justify="space-between" gap="xs">
          {message}
          <Button
            size="compact-xs"
            variant="light"
            onClick={() => {
              notifications.hide(id);
              onUndo();
            }}
          >
            <Trans>Undo</Trans>
          </Button>
        </Group>
      ),
  });
}

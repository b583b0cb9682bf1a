/** A notification that an action is done, with a button that takes it back; a second one says why that failed. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";

const UNDO_MS = 15_000;

/**
 * Says what was done, to which target. The button outlives the dialog in which the action was confirmed, and often the
 * page, so this is where a failed undo is told.
 */
export function tellWithUndo(
  title: string,
  target: string,
  onUndo: (() => Promise<unknown>) | undefined,
  message = target,
): void {
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
              onUndo().catch((error: unknown) => tellFailedUndo(title, target, error));
            }}
          >
            <Trans>Undo</Trans>
          </Button>
        </Group>
      ),
  });
}

function tellFailedUndo(title: string, target: string, error: unknown): void {
  const why = error instanceof Error ? error.message : String(error);
  notifications.show({
    color: "red",
    title: t`Undo failed: ${title}`,
    message: `${target}: ${why}`,
    autoClose: false,
  });
}

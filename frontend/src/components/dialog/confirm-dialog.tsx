/** Asks before something is done: what will happen, two buttons, and the server's refusal where there is one. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Modal, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { type ErrorDetail, ErrorState } from "@/components/error-state";

export interface ConfirmDialogProps {
  /** The action's verb: it begins the title and names the button. */
  action: string;
  /** The object of the action. */
  target: string;
  /** The consequences, and the fields that the action needs. */
  children: ReactNode;
  /** Whether the action cannot be undone, or stops pods. */
  destructive?: boolean;
  /** Not ready to be confirmed: a field lacks its value. */
  disabled?: boolean;
  pending: boolean;
  error: { message: string; details?: ErrorDetail[] } | null;
  onConfirm: () => void;
  onClose: () => void;
}

export function ConfirmDialog({
  action,
  target,
  children,
  destructive = false,
  disabled = false,
  pending,
  error,
  onConfirm,
  onClose,
}: ConfirmDialogProps) {
  return (
    <Modal opened onClose={onClose} title={`${action} ${target}?`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        <Stack>
          {children}
          {error !== null && (
            <ErrorState title={t`${action} failed`} message={error.message} details={error.details ?? []} />
          )}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              <Trans>Back</Trans>
            </Button>
            <Button
              type="submit"
              loading={pending}
              disabled={disabled}
              data-autofocus
              {...(destructive ? { color: "red" } : {})}
            >
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** Asks before an object is deleted, and says what that would do. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { deletionQuery, type ObjectKind, type ObjectReference, useDeleteObject } from "@/api/manifests";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { ErrorState } from "@/components/error-state";
import { faultLines } from "@/lib/words/refusal";
import { EffectsView } from "./effects";

export interface DeleteDialogProps {
  reference: ObjectReference & { kind: ObjectKind };
  onClose: () => void;
  onDeleted: () => void;
}

export function DeleteDialog({ reference, onClose, onDeleted }: DeleteDialogProps) {
  const { kind, namespace = "", name } = reference;
  const cluster = useCluster();
  const trial = useQuery(deletionQuery(cluster, reference));
  const deletion = useDeleteObject(cluster);
  const target = `${kind} ${namespace === "" ? name : `${namespace}/${name}`}`;
  const holding = trial.data?.result.warnings.map(({ message }) => message) ?? [];
  const confirm = () =>
    deletion.mutate(reference, {
      onSuccess: (isGone) => {
        notifications.show({
          color: isGone ? "teal" : "yellow",
          title: isGone ? t`Deleted` : t`Marked for deletion`,
          message: isGone ? target : t`${target} goes when nothing holds it any more.`,
        });
        onClose();
        if (isGone) onDeleted();
      },
    });
  return (
    <ConfirmDialog
      action={t`Delete`}
      target={target}
      destructive
      pending={deletion.isPending}
      error={
        deletion.error === null
          ? null
          : {
              message: deletion.error.message,
              details: faultLines(deletion.error instanceof ApiError ? deletion.error.errors : []),
            }
      }
      onConfirm={confirm}
      onClose={onClose}
    >
      {trial.isPending && <Skeleton height={60} />}
      {trial.error !== null && (
        <ErrorState title={t`What it would do is not known`} message={trial.error.message} />
      )}
      {holding.length > 0 && (
        <Text size="sm">
          <Trans>It is marked, and goes when nothing holds it any more: {holding.join("; ")}.</Trans>
        </Text>
      )}
      {trial.data?.effects != null && <EffectsView effects={trial.data.effects} warnings={[]} />}
    </ConfirmDialog>
  );
}

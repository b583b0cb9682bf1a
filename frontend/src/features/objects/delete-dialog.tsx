/** Asks before an object is deleted, and says what that would do. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { type DeletableReference, deletionQuery, objectQuery, useDeleteObject } from "@/api/manifests";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { ErrorState } from "@/components/error-state";
import { PreviewedEffects } from "@/components/manifest/effects-view";
import { faultLines } from "@/lib/words/refusal";

export interface DeleteDialogProps {
  reference: DeletableReference;
  onClose: () => void;
  onDeleted: () => void;
}

const isChanged = (error: Error) => error instanceof ApiError && error.status === 412;

function refusal(error: Error | null) {
  if (error === null) return null;
  if (isChanged(error)) {
    return {
      message: t`This object has changed since you opened it. The effects above are up to date. Delete anyway?`,
    };
  }
  return { message: error.message, details: faultLines(error instanceof ApiError ? error.errors : []) };
}

export function DeleteDialog({ reference, onClose, onDeleted }: DeleteDialogProps) {
  const { kind, namespace = "", name } = reference;
  const cluster = useCluster();
  const object = useQuery(objectQuery(cluster, reference));
  const trial = useQuery(deletionQuery(cluster, reference));
  const deletion = useDeleteObject(cluster, reference);
  const version = object.data?.version ?? null;
  const target = `${kind} ${namespace === "" ? name : `${namespace}/${name}`}`;
  const holding = trial.data?.result.warnings.map(({ message }) => message) ?? [];
  const confirm = () => {
    if (version === null) return;
    deletion.mutate(version, {
      onSuccess: (isGone) => {
        notifications.show({
          color: isGone ? "teal" : "yellow",
          title: isGone ? t`Deleted` : t`Marked for deletion`,
          message: isGone ? target : t`${target} will be deleted when nothing uses it.`,
        });
        onClose();
        if (isGone) onDeleted();
      },
      onError: (error) => {
        if (!isChanged(error)) return;
        void object.refetch();
        void trial.refetch();
      },
    });
  };
  return (
    <ConfirmDialog
      action={t`Delete`}
      target={target}
      destructive
      disabled={version === null}
      pending={deletion.isPending}
      error={refusal(deletion.error ?? object.error)}
      onConfirm={confirm}
      onClose={onClose}
    >
      {trial.isPending && <Skeleton height={60} />}
      {trial.error !== null && (
        <ErrorState title={t`The effects are unknown`} message={trial.error.message} />
      )}
      {holding.length > 0 && (
        <Text size="sm">
          <Trans>
            It is marked for deletion and will be deleted when nothing uses it: {holding.join("; ")}.
          </Trans>
        </Text>
      )}
      {trial.data !== undefined && <PreviewedEffects preview={trial.data} warnings={[]} />}
    </ConfirmDialog>
  );
}

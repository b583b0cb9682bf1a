/** The role bindings of the clusters on screen. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useCluster, useClusterOf, useIsSeveral } from "@/api/cluster";
import type { RoleBinding } from "@/api/types";
import { roleBindingsQuery, useUnbindRole } from "@/api/users";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { EmptyState } from "@/components/empty-state";
import { Icon } from "@/components/icon";
import type { DataColumn } from "@/components/table/data-table";
import { PagedTable } from "@/components/table/paged-table";
import { keptBecause, subjectWords, whereWords } from "./words";

const clusterOfRow = (row: RoleBinding) => (row.every_cluster ? t`every cluster` : row.cluster);

export function Roles({ editable }: { editable: boolean }) {
  const cluster = useCluster();
  const list = useInfiniteQuery(roleBindingsQuery(cluster));
  const several = useIsSeveral();
  const clusterOf = useClusterOf(clusterOfRow);
  const unbinding = useUnbindRole();
  const [asked, setAsked] = useState<RoleBinding | null>(null);
  const columns = useMemo(() => columnsFor(several, editable ? setAsked : null), [several, editable]);
  return (
    <>
      <PagedTable
        label={t`Roles`}
        title={t`Role bindings`}
        list={list}
        columns={columns}
        rowKey={(row) => row.uid}
        clusterOf={clusterOf}
        empty={
          <EmptyState icon="users" title={t`No roles yet`}>
            <Trans>Superusers have all permissions without a role.</Trans>
          </EmptyState>
        }
      />
      {asked !== null && (
        <ConfirmDialog
          action={t`Unbind`}
          target={t`${asked.role ?? ""} of ${subjectWords(asked)}`}
          destructive
          pending={unbinding.isPending}
          error={unbinding.error}
          onConfirm={() => unbinding.mutate(asked, { onSuccess: () => setAsked(null) })}
          onClose={() => {
            unbinding.reset();
            setAsked(null);
          }}
        >
          <Text size="sm">
            <Trans>The permissions end immediately, also on open pages. Workloads are not affected.</Trans>
          </Text>
        </ConfirmDialog>
      )}
    </>
  );
}

function columnsFor(
  several: boolean,
  onUnbind: ((row: RoleBinding) => void) | null,
): DataColumn<RoleBinding>[] {
  const columns: DataColumn<RoleBinding>[] = [
    { id: "who", header: t`User`, cell: ({ row: { original } }) => subjectWords(original) },
    { id: "role", header: t`Role`, meta: { width: "112px" }, cell: ({ row: { original } }) => original.role },
    {
      id: "where",
      header: t`Scope`,
      meta: { hideBelow: 560, below: 1 },
      cell: ({ row: { original } }) => whereWords(original),
    },
  ];
  // Of several clusters the table itself says whose a row is.
  if (!several) columns.push(CLUSTERS);
  if (onUnbind === null) return columns;
  return [
    ...columns,
    {
      id: "unbind",
      header: t`Unbind`,
      meta: { width: "80px", align: "right" },
      cell: ({ row: { original } }) => <Unbind row={original} onUnbind={onUnbind} />,
    },
  ];
}

const CLUSTERS: DataColumn<RoleBinding> = {
  id: "clusters",
  header: () => t`Clusters`,
  meta: { width: "120px", hideBelow: 760 },
  cell: ({ row: { original } }) => (original.every_cluster ? t`every cluster` : t`this one`),
};

function Unbind({ row, onUnbind }: { row: RoleBinding; onUnbind: (row: RoleBinding) => void }) {
  const kept = keptBecause(row);
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      aria-label={t`Unbind ${row.role ?? ""} of ${subjectWords(row)}`}
      title={kept ?? t`Unbind`}
      disabled={kept !== null}
      onClick={() => onUnbind(row)}
    >
      <Icon name="close" size={15} />
    </ActionIcon>
  );
}

/** All users; one that is opened shows its groups and tokens. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "@/api/client";
import type { UserRow } from "@/api/types";
import { usersQuery } from "@/api/users";
import { BadgeDot } from "@/components/badge-dot";
import { EmptyState } from "@/components/empty-state";
import type { DataColumn } from "@/components/table/data-table";
import { FilterRow, TextFilter } from "@/components/table/filters";
import { PagedTable, useRows } from "@/components/table/paged-table";
import { AccountDialog } from "./account-dialog";
import { originWords } from "./words";

export function Accounts() {
  const [search, setSearch] = useState<string | undefined>(undefined);
  const list = useInfiniteQuery(usersQuery(search ?? ""));
  const rows = useRows(list);
  const [opened, setOpened] = useState<string | null>(null);
  const user = rows.find(({ username }) => username === opened);
  if (list.error instanceof ApiError && list.error.status === 403) {
    return (
      <EmptyState icon="users" title={t`Accounts do not belong to a cluster`}>
        <Trans>Only admins of all clusters manage accounts; you are an admin of this cluster.</Trans>
      </EmptyState>
    );
  }
  return (
    <>
      <FilterRow onClear={search === undefined ? undefined : () => setSearch(undefined)}>
        <TextFilter
          search
          label={t`Search users by name`}
          placeholder={t`Search users`}
          value={search}
          onChange={(value) => setSearch(value ?? undefined)}
        />
      </FilterRow>
      <PagedTable
        label={t`Accounts`}
        title={t`Users and machines`}
        list={list}
        columns={columns()}
        rowKey={(row) => row.username}
        onOpen={(row) => setOpened(row.username)}
        empty={<EmptyState icon="users" title={t`No account matches this name`} />}
      />
      {user !== undefined && <AccountDialog user={user} onClose={() => setOpened(null)} />}
    </>
  );
}

const columns = (): DataColumn<UserRow>[] => [
  {
    id: "username",
    header: t`Name`,
    cell: ({ row: { original } }) => (
      <Text span inherit fw={600}>
        {original.username}
      </Text>
    ),
  },
  {
    id: "origin",
    header: t`Account`,
    meta: { width: "130px" },
    cell: ({ row: { original } }) => (original.is_superuser ? t`Superuser` : originWords(original.origin)),
  },
  {
    id: "groups",
    header: t`Groups`,
    meta: { hideBelow: 760 },
    cell: ({ row: { original } }) => original.groups.join(", "),
  },
  {
    id: "state",
    header: t`State`,
    meta: { width: "110px" },
    cell: ({ row: { original } }) => (
      <BadgeDot
        label={original.is_active ? t`Active` : t`Off`}
        color={original.is_active ? "green" : "gray"}
      />
    ),
  },
];

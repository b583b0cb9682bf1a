/** Who waits in a ClusterQueue, in the order in which it serves them. */
import { Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { useCluster } from "@/api/cluster";
import type { Workload } from "@/api/types";
import { pendingInQueueQuery } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { type DataColumn, DataTable } from "@/components/data-table";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { TextLink } from "@/components/link";
import { Panel } from "@/components/panel";
import { formatCount } from "@/lib/quantity";

const COLUMNS: DataColumn<Workload>[] = [
  {
    id: "position",
    header: "#",
    meta: { width: "52px", align: "right" },
    cell: ({ row: { original, index } }) => original.position ?? index + 1,
  },
  {
    id: "name",
    header: "Workload",
    cell: ({ row: { original } }) => (
      <TextLink
        to="/workloads/$namespace/$name"
        params={{ namespace: original.namespace, name: original.name }}
        fz="inherit"
        tabIndex={-1}
      >
        {original.namespace}/{original.name}
      </TextLink>
    ),
  },
  {
    id: "priority",
    header: "Priority",
    meta: { width: "84px", align: "right", hideBelow: 560 },
    cell: ({ row: { original } }) => original.priority,
  },
  {
    id: "why",
    header: "Why it waits",
    meta: { hideBelow: 760, width: "34%" },
    cell: ({ row: { original } }) => (
      <span title={original.message}>{original.message || original.reason || "–"}</span>
    ),
  },
  {
    id: "waits",
    header: "Queued",
    meta: { width: "112px", align: "right" },
    cell: ({ row: { original } }) => <Ago time={original.queued_at ?? original.created_at} />,
  },
];

export function PendingList({ queue, pending }: { queue: string; pending: number | null }) {
  const navigate = useNavigate();
  const list = useInfiniteQuery(pendingInQueueQuery(useCluster(), queue));
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.results) ?? [], [list.data]);
  const { fetchNextPage } = list;
  const more = useCallback(() => void fetchNextPage(), [fetchNextPage]);
  return (
    <Panel
      title="Pending, in the order of service"
      flush
      aside={
        pending !== null && (
          <Text fz="sm" c="var(--kw-muted)" className="kw-number" data-live>
            {formatCount(pending)} waiting
          </Text>
        )
      }
    >
      {list.error !== null ? (
        <ErrorState
          title="The pending workloads cannot be shown"
          message={list.error.message}
          onRetry={() => void list.refetch()}
        />
      ) : (
        <DataTable
          label={`Workloads pending in ${queue}`}
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.uid}
          loading={list.isPending}
          onOpen={({ namespace, name }) =>
            void navigate({ to: "/workloads/$namespace/$name", params: { namespace, name } })
          }
          onEnd={list.hasNextPage ? more : undefined}
          loadingMore={list.isFetchingNextPage}
          height="520px"
          empty={<EmptyState icon="check" title="Nobody waits in this queue" />}
        />
      )}
    </Panel>
  );
}

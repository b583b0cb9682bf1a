/** Who waits in a ClusterQueue, in the order in which it serves them. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import type { Workload } from "@/api/types";
import { pendingInQueueQuery } from "@/api/workloads";
import { EmptyState } from "@/components/empty-state";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { WorkloadLink } from "@/components/object-links";
import { ageColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { PagedTable } from "@/components/table/paged-table";
import { formatCount } from "@/lib/quantity";
import { shortReason } from "@/lib/words/pending-reason";

const COLUMNS: DataColumn<Workload>[] = [
  {
    id: "position",
    header: "#",
    meta: { width: "52px", align: "right" },
    cell: ({ row: { original, index } }) => original.position ?? index + 1,
  },
  {
    id: "name",
    header: () => t`Workload`,
    cell: ({ row: { original } }) => (
      <WorkloadLink namespace={original.namespace} name={original.name} inRow>
        <MiddleEllipsis text={`${original.namespace}/${original.name}`} />
      </WorkloadLink>
    ),
  },
  {
    id: "priority",
    header: () => t`Priority`,
    meta: { width: "84px", align: "right", hideBelow: 560 },
    cell: ({ row: { original } }) => original.priority,
  },
  {
    id: "why",
    header: () => t`Why it waits`,
    meta: { hideBelow: 760, width: "40%" },
    cell: ({ row: { original } }) => (
      <span title={original.message}>{shortReason(original.reason || "PendingEvaluation")}</span>
    ),
  },
  ageColumn((workload) => workload.queued_at ?? workload.created_at, { align: "right" }),
];

export function PendingList({ queue, pending }: { queue: string; pending: number | null }) {
  const navigate = useNavigate();
  const list = useInfiniteQuery(pendingInQueueQuery(useCluster(), queue));
  return (
    <PagedTable
      title={t`Pending, in the order of service`}
      aside={
        pending !== null && (
          <Text fz="sm" c="var(--kw-muted)" className="kw-number" data-live>
            <Trans>{formatCount(pending)} waiting</Trans>
          </Text>
        )
      }
      label={t`Workloads pending in ${queue}`}
      list={list}
      columns={COLUMNS}
      rowKey={(row) => row.uid}
      onOpen={({ namespace, name }) =>
        void navigate({ to: "/workloads/$namespace/$name", params: { namespace, name } })
      }
      height="520px"
      empty={<EmptyState icon="check" title={t`No pending workloads in this queue`} />}
    />
  );
}

/** The workloads of one ClusterQueue: the waiting ones in the order in which it serves them, and those with quota. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { waiting } from "@/api/live/live-data";
import type { Workload } from "@/api/types";
import { admittedInQueueQuery, pendingInQueueQuery, workloadCountsQuery } from "@/api/workloads";
import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { WorkloadLink } from "@/components/object-links";
import { ageColumn, textColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { type PagedList, PagedTable } from "@/components/table/paged-table";
import { formatCount } from "@/lib/quantity";
import { shortReason } from "@/lib/words/pending-reason";
import { summarizeRequests } from "@/lib/words/requests";
import { WorkloadStateBadge } from "../list/workload-columns";
import classes from "../workloads.module.css";

const nameColumn: DataColumn<Workload> = {
  id: "name",
  header: () => t`Workload`,
  cell: ({ row: { original } }) => (
    <WorkloadLink namespace={original.namespace} name={original.name} fw={550} inRow>
      <MiddleEllipsis text={`${original.namespace}/${original.name}`} />
    </WorkloadLink>
  ),
};

const requestsColumn: DataColumn<Workload> = {
  id: "requests",
  header: () => t`Requests`,
  meta: { hideBelow: 1000, width: "24%", below: 2 },
  cell: ({ row: { original } }) => {
    const words = summarizeRequests(original.pod_sets).join(" · ");
    return <span title={words}>{words || "–"}</span>;
  },
};

const priorityColumn: DataColumn<Workload> = {
  id: "priority",
  header: () => t`Priority`,
  meta: { width: "84px", align: "right", hideBelow: 1240 },
  cell: ({ row: { original } }) => <span title={original.priority_class}>{original.priority}</span>,
};

const submitterColumn = textColumn<Workload>(
  "submitted_by",
  () => t`Submitted by`,
  (workload) => workload.submitted_by || "–",
  { width: "12%", hideBelow: 1800 },
);

const PENDING_COLUMNS: DataColumn<Workload>[] = [
  {
    id: "position",
    header: "#",
    meta: { width: "48px", align: "right" },
    cell: ({ row: { original, index } }) => original.position ?? index + 1,
  },
  nameColumn,
  {
    id: "why",
    header: () => t`Why it waits`,
    meta: { hideBelow: 760, width: "22%", below: 1 },
    cell: ({ row: { original } }) => (
      <span title={original.message}>{shortReason(original.reason || "PendingEvaluation")}</span>
    ),
  },
  requestsColumn,
  submitterColumn,
  priorityColumn,
  ageColumn((workload) => workload.queued_at ?? workload.created_at, { align: "right" }),
];

const ADMITTED_COLUMNS: DataColumn<Workload>[] = [
  nameColumn,
  {
    id: "state",
    header: () => t`Status`,
    meta: { width: "142px", hideBelow: 560, below: 1 },
    cell: ({ row: { original } }) => <WorkloadStateBadge workload={original} />,
  },
  requestsColumn,
  submitterColumn,
  priorityColumn,
  ageColumn((workload) => workload.admitted_at ?? workload.quota_reserved_at, { align: "right" }),
];

export function PendingInQueue({ queue }: { queue: string }) {
  const pending = useLive(({ data }) => data?.cluster_queues[queue]);
  return (
    <QueueTable
      title={t`Pending, in queue order`}
      aside={pending !== undefined && <PendingCounts queue={queue} pending={waiting(pending)} />}
      label={t`Workloads pending in ${queue}`}
      list={useInfiniteQuery(pendingInQueueQuery(useCluster(), queue))}
      columns={PENDING_COLUMNS}
      empty={<EmptyState icon="check" title={t`No workload waits in this queue`} />}
    />
  );
}

/** How many wait, and for what: each reason leads to its workloads. */
function PendingCounts({ queue, pending }: { queue: string; pending: number }) {
  const cluster = useCluster();
  const counts = useQuery(
    workloadCountsQuery(cluster, "reason", { cluster_queue: queue, state: "Pending" }),
  ).data;
  return (
    <Text component="div" fz="sm" c="var(--kw-muted)" className={classes.counts} data-live>
      <span className="kw-number">
        <Trans>{formatCount(pending)} waiting</Trans>
      </span>
      {counts?.groups
        .filter(({ count }) => count > 0)
        .toSorted((a, b) => b.count - a.count)
        .map(({ value, count }) => (
          <TextLink
            key={value}
            to="/workloads"
            search={{ state: "Pending", cluster_queue: queue, ...(value === "" ? {} : { reason: value }) }}
            inherit
            title={value}
          >
            {`${shortReason(value || "PendingEvaluation")} (${formatCount(count)})`}
          </TextLink>
        ))}
    </Text>
  );
}

export function AdmittedInQueue({ queue }: { queue: string }) {
  const reserving = useLive(({ data }) => data?.cluster_queues[queue]?.reserving);
  return (
    <QueueTable
      title={t`With quota, newest first`}
      aside={
        <Text component="div" fz="sm" c="var(--kw-muted)" className={classes.counts} data-live>
          {reserving !== undefined && (
            <span className="kw-number">
              <Trans>{formatCount(reserving)} with quota</Trans>
            </span>
          )}
          <TextLink to="/workloads" search={{ cluster_queue: queue }} inherit>
            <Trans>All workloads of the queue</Trans>
          </TextLink>
        </Text>
      }
      label={t`Workloads with quota in ${queue}`}
      list={useInfiniteQuery(admittedInQueueQuery(useCluster(), queue))}
      columns={ADMITTED_COLUMNS}
      empty={<EmptyState icon="workloads" title={t`No workload holds quota in this queue`} />}
    />
  );
}

interface QueueTableProps {
  title: string;
  aside: ReactNode;
  label: string;
  list: PagedList<Workload>;
  columns: DataColumn<Workload>[];
  empty: ReactNode;
}

function QueueTable(table: QueueTableProps) {
  const navigate = useNavigate();
  return (
    <PagedTable
      {...table}
      rowKey={(row) => row.uid}
      onOpen={({ namespace, name }) =>
        void navigate({ to: "/workloads/$namespace/$name", params: { namespace, name } })
      }
      height="max(300px, 42dvh)"
    />
  );
}

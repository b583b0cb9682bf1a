/** The scheduling cycles that decided something, the newest first. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { cyclesQuery } from "@/api/cluster-settings";
import type { SchedulingCycle } from "@/api/types";
import { BackLink } from "@/components/back-link";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { ageColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { PagedTable, renewTop } from "@/components/table/paged-table";
import { formatCount } from "@/lib/quantity";
import { formatMilliseconds } from "@/lib/time";

const RENEW_MS = 5_000;

function countColumn(
  id: "heads" | "admitted" | "preempted" | "inadmissible",
  header: () => string,
  meaning: () => string,
): DataColumn<SchedulingCycle> {
  return {
    id,
    header,
    meta: {
      align: "right",
      width: "100px",
      ...(id === "heads" || id === "inadmissible" ? { hideBelow: 560 } : {}),
    },
    cell: ({ row: { original } }) => <span title={meaning()}>{formatCount(original[id])}</span>,
  };
}

const COLUMNS: DataColumn<SchedulingCycle>[] = [
  ageColumn((cycle) => cycle.started_at),
  {
    id: "number",
    header: () => t`Cycle`,
    meta: { align: "right", hideBelow: 560 },
    cell: ({ row: { original } }) => (
      <span title={t`Counts all cycles of an epoch, including cycles without a decision.`}>
        {formatCount(original.number)}
      </span>
    ),
  },
  {
    id: "epoch",
    header: () => t`Epoch`,
    meta: { align: "right", hideBelow: 760 },
    cell: ({ row: { original } }) => formatCount(original.epoch),
  },
  {
    id: "took",
    header: () => t`Duration`,
    meta: { align: "right", width: "100px" },
    cell: ({ row: { original } }) => formatMilliseconds(original.duration_seconds),
  },
  countColumn(
    "heads",
    () => t`Considered`,
    () => t`Workloads at the heads of queues that the cycle considered`,
  ),
  countColumn(
    "admitted",
    () => t`Admitted`,
    () => t`Workloads that got quota in this cycle`,
  ),
  countColumn(
    "preempted",
    () => t`Preempted`,
    () => t`Preempted workloads`,
  ),
  countColumn(
    "inadmissible",
    () => t`Inadmissible`,
    () => t`Workloads that cannot start until something changes`,
  ),
];

export function CyclesPage() {
  const list = useInfiniteQuery({ ...cyclesQuery(useCluster()), refetchInterval: renewTop(RENEW_MS) });
  return (
    <>
      <PageHeader
        title={t`Scheduling cycles`}
        trail={<BackLink to="/cluster">{t`Cluster`}</BackLink>}
        facts={t`One row for each cycle that made a decision.`}
      />
      <PagedTable
        label={t`Scheduling cycles`}
        list={list}
        columns={COLUMNS}
        rowKey={(row) => String(row.id)}
        empty={
          <EmptyState icon="clock" title={t`No cycle yet`}>
            <Trans>Cycles in which the scheduler made a decision are listed here.</Trans>
          </EmptyState>
        }
      />
    </>
  );
}

/** All workloads that match, counted group by group; a group opens as the list that it stands for. */
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useCluster } from "@/api/cluster";
import { workloadCountsQuery } from "@/api/workloads";
import { EmptyState } from "@/components/empty-state";
import { Meter } from "@/components/figures/meter";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { type DataColumn, DataTable } from "@/components/table/data-table";
import { formatCount, formatShare } from "@/lib/quantity";
import { drillInto, type WorkloadFilters, type WorkloadGroup } from "@/lib/url/workload-filters";
import { groupWords } from "./view-bar";

interface GroupRow {
  value: string;
  count: number;
  total: number;
}

export interface WorkloadGroupsProps {
  by: WorkloadGroup;
  filters: WorkloadFilters;
  onOpen: (filters: WorkloadFilters) => void;
}

function columnsOf(by: WorkloadGroup): DataColumn<GroupRow>[] {
  return [
    {
      id: "value",
      header: groupWords(by),
      cell: ({ row: { original } }) => original.value || t`(none)`,
    },
    {
      id: "count",
      header: t`Workloads`,
      meta: { width: "110px", align: "right" },
      cell: ({ row: { original } }) => <span className="kw-number">{formatCount(original.count)}</span>,
    },
    {
      id: "share",
      header: "",
      meta: { width: "40%" },
      cell: ({
        row: {
          original: { count, total },
        },
      }) => (
        <Meter
          total={total}
          label={t`${formatShare(count, total)} of the matches`}
          segments={[{ value: count, color: "var(--kw-used)", label: formatShare(count, total) }]}
        />
      ),
    },
  ];
}

export function WorkloadGroups({ by, filters, onOpen }: WorkloadGroupsProps) {
  const counts = useQuery(workloadCountsQuery(useCluster(), by, filters));
  const columns = useMemo(() => columnsOf(by), [by]);
  const rows = useMemo(
    () => counts.data?.groups.map((group) => ({ ...group, total: counts.data.total })) ?? [],
    [counts.data],
  );
  if (counts.error !== null && counts.data === undefined) {
    return <QueryError title={t`The groups cannot be shown`} query={counts} />;
  }
  return (
    <Panel flush>
      <DataTable
        label={t`Workloads by ${groupWords(by)}`}
        columns={columns}
        rows={rows}
        rowKey={(row) => row.value}
        loading={counts.isPending}
        onOpen={({ value }) => {
          const inside = drillInto(filters, by, value);
          if (inside !== undefined) onOpen(inside);
        }}
        height="max(420px, calc(100dvh - 250px))"
        empty={<EmptyState icon="filter" title={t`No workload matches these filters`} />}
      />
    </Panel>
  );
}

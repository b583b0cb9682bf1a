/** The ClusterQueues of several clusters. The tree of quota is one cluster's: its link leads there. */
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { useCluster, useClusterOf, useInCluster } from "@/api/cluster";
import { clusterQueuesQuery } from "@/api/queues";
import type { ClusterQueue } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { DataTable } from "@/components/table/data-table";
import { FilterRow, TextFilter } from "@/components/table/filters";
import { QUEUE_COLUMNS } from "./queue-columns";
import type { QueuesPageProps } from "./queues-page";

const clusterOfRow = ({ cluster }: ClusterQueue) => cluster;

export function QueuesOfClusters({ search, onSearch }: QueuesPageProps) {
  const navigate = useNavigate();
  const inCluster = useInCluster();
  const clusterOf = useClusterOf(clusterOfRow);
  const queues = useQuery(clusterQueuesQuery(useCluster()));
  const shown = useMemo(() => {
    const text = search.trim().toLowerCase();
    return (queues.data ?? []).filter(({ name, cohort }) =>
      [name, cohort].some((each) => each.toLowerCase().includes(text)),
    );
  }, [queues.data, search]);
  return (
    <>
      <PageHeader title={t`Queues`} />
      <FilterRow onClear={search === "" ? undefined : () => onSearch("")}>
        <TextFilter
          search
          label={t`Search queues and cohorts`}
          placeholder={t`Search queues and cohorts`}
          value={search}
          onChange={(text) => onSearch(text ?? "")}
        />
      </FilterRow>
      {queues.error !== null && queues.data === undefined ? (
        <QueryError title={t`This list cannot be shown`} query={queues} />
      ) : (
        <Panel flush>
          <DataTable
            label={t`ClusterQueues`}
            columns={QUEUE_COLUMNS}
            rows={shown}
            rowKey={({ uid }) => uid}
            clusterOf={clusterOf}
            loading={queues.isPending}
            onOpen={(queue) =>
              void navigate({ to: "/queues/$name", params: { name: queue.name }, ...inCluster(queue) })
            }
            height="max(420px, calc(100dvh - 220px))"
            empty={
              search === "" ? (
                <EmptyState icon="queues" title={t`No queues yet`} />
              ) : (
                <EmptyState icon="search" title={t`No queue or cohort matches this name`} />
              )
            }
          />
        </Panel>
      )}
    </>
  );
}

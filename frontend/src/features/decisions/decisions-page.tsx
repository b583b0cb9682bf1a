/** The decisions of the scheduler with their times, reasons and workloads. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCluster, useClusterOf, useInCluster } from "@/api/cluster";
import { decisionsQuery } from "@/api/decisions";
import { namesQuery } from "@/api/queues";
import type { Decision } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { ChoiceFilter, FilterRow, TextFilter } from "@/components/table/filters";
import { PagedTable, renewTop } from "@/components/table/paged-table";
import { TimePicker } from "@/components/time/time-picker";
import { type DecisionFilters, parseDecisionFilters } from "@/lib/url/decision-filters";
import { parseTimeRange, withoutTime } from "@/lib/url/time-range";
import { DECISION_ACTIONS, decisionLook } from "@/lib/words/decision-action";
import { DECISION_COLUMNS } from "./decision-columns";

export interface DecisionsPageProps {
  filters: DecisionFilters;
  onFilter: (filters: DecisionFilters) => void;
}

export function DecisionsPage({ filters, onFilter }: DecisionsPageProps) {
  return (
    <>
      <PageHeader title={t`Decisions`} />
      <Filters filters={filters} onFilter={onFilter} />
      <DecisionTable filters={filters} />
    </>
  );
}

const ACTION_CHOICES = DECISION_ACTIONS.map((action) => ({
  value: action,
  label: decisionLook(action).label,
}));

function Filters({ filters, onFilter }: DecisionsPageProps) {
  const cluster = useCluster();
  const namespaces = useQuery(namesQuery(cluster, "namespaces"));
  const queues = useQuery(namesQuery(cluster, "cluster-queues"));
  const set = (change: Record<string, string | null>) =>
    onFilter(parseDecisionFilters({ ...filters, ...change }));
  return (
    <FilterRow onClear={Object.keys(filters).length > 0 ? () => onFilter({}) : undefined}>
      <TextFilter
        search
        label={t`Search workloads by name`}
        placeholder={t`Search workloads`}
        value={filters.search}
        onChange={(search) => set({ search })}
      />
      <ChoiceFilter
        label={t`Decision`}
        choices={ACTION_CHOICES}
        value={filters.action}
        onChange={(action) => set({ action })}
      />
      <ChoiceFilter
        label={t`Namespace`}
        choices={namespaces.data}
        value={filters.namespace}
        onChange={(namespace) => set({ namespace })}
      />
      <ChoiceFilter
        label={t`ClusterQueue`}
        choices={queues.data}
        value={filters.cluster_queue}
        onChange={(queue) => set({ cluster_queue: queue })}
      />
      <TimePicker
        range={parseTimeRange(filters)}
        onChange={(range) => onFilter({ ...withoutTime(filters), ...range })}
      />
    </FilterRow>
  );
}

const RENEW_MS = 5_000;

const clusterOfRow = ({ cluster }: Decision) => cluster;

function DecisionTable({ filters }: { filters: DecisionFilters }) {
  const navigate = useNavigate();
  const inCluster = useInCluster();
  const list = useInfiniteQuery({
    ...decisionsQuery(useCluster(), filters),
    refetchInterval: renewTop(RENEW_MS),
  });
  return (
    <PagedTable
      label={t`Decisions`}
      list={list}
      columns={DECISION_COLUMNS}
      rowKey={(row) => `${row.id} ${row.decided_at}`}
      onOpen={({ cluster, namespace, workload_name: name }) =>
        void navigate({
          to: "/workloads/$namespace/$name",
          params: { namespace, name },
          ...inCluster({ cluster }),
        })
      }
      clusterOf={useClusterOf(clusterOfRow)}
      empty={
        <EmptyState
          icon="clock"
          title={Object.keys(filters).length > 0 ? t`No decision matches` : t`No decisions yet`}
        >
          <Trans>
            Every admission, preemption, eviction and refusal is recorded here with its reason. Records are
            kept after the workload is deleted.
          </Trans>
        </EmptyState>
      }
    />
  );
}

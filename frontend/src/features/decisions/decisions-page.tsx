/** What the scheduler decided, when, why and on whom. */
import { Button, Group, Select, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { useCluster } from "@/api/cluster";
import { decisionsQuery } from "@/api/decisions";
import { namesQuery } from "@/api/queues";
import { DataTable } from "@/components/data-table";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Icon } from "@/components/icon";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { DECISION_ACTIONS, decisionLook } from "@/lib/decision-action";
import { type DecisionFilters, parseDecisionFilters } from "@/lib/decision-filters";
import { DECISION_COLUMNS } from "./decision-columns";

export interface DecisionsPageProps {
  filters: DecisionFilters;
  onFilter: (filters: DecisionFilters) => void;
}

export function DecisionsPage({ filters, onFilter }: DecisionsPageProps) {
  return (
    <>
      <PageHeader title="Decisions" />
      <FilterBar filters={filters} onFilter={onFilter} />
      <DecisionTable filters={filters} />
    </>
  );
}

function FilterBar({ filters, onFilter }: DecisionsPageProps) {
  const cluster = useCluster();
  const namespaces = useQuery(namesQuery(cluster, "namespaces"));
  const queues = useQuery(namesQuery(cluster, "cluster-queues"));
  const set = (change: Record<string, string | null>) =>
    onFilter(parseDecisionFilters({ ...filters, ...change }));
  return (
    <Group gap="xs" mb="sm">
      <TextInput
        type="search"
        aria-label="Search workloads by name"
        placeholder="Search workloads  ( / )"
        size="xs"
        w={220}
        leftSection={<Icon name="search" size={14} />}
        value={filters.search ?? ""}
        onChange={(event) => set({ search: event.currentTarget.value })}
      />
      <Select
        aria-label="Decision"
        placeholder="Decision"
        size="xs"
        w={140}
        clearable
        data={DECISION_ACTIONS.map((action) => ({ value: action, label: decisionLook(action).label }))}
        value={filters.action ?? null}
        onChange={(action) => set({ action })}
      />
      <Select
        aria-label="Namespace"
        placeholder="Namespace"
        size="xs"
        w={140}
        clearable
        searchable
        limit={100}
        data={namespaces.data ?? []}
        value={filters.namespace ?? null}
        onChange={(namespace) => set({ namespace })}
      />
      <Select
        aria-label="ClusterQueue"
        placeholder="ClusterQueue"
        size="xs"
        w={160}
        clearable
        searchable
        limit={100}
        data={queues.data ?? []}
        value={filters.cluster_queue ?? null}
        onChange={(queue) => set({ cluster_queue: queue })}
      />
      {Object.keys(filters).length > 0 && (
        <Button
          variant="subtle"
          size="xs"
          leftSection={<Icon name="close" size={13} />}
          onClick={() => onFilter({})}
        >
          Clear
        </Button>
      )}
    </Group>
  );
}

const RENEW_MS = 5_000;

function DecisionTable({ filters }: { filters: DecisionFilters }) {
  const navigate = useNavigate();
  const list = useInfiniteQuery({
    ...decisionsQuery(useCluster(), filters),
    // Whoever has scrolled into the past reads; the top renews itself.
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) > 1 ? false : RENEW_MS),
  });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.results) ?? [], [list.data]);
  const { fetchNextPage } = list;
  const more = useCallback(() => void fetchNextPage(), [fetchNextPage]);
  if (list.error !== null && rows.length === 0) {
    return (
      <ErrorState
        title="The decisions cannot be shown"
        message={list.error.message}
        onRetry={() => void list.refetch()}
      />
    );
  }
  return (
    <Panel flush>
      <DataTable
        label="Decisions"
        columns={DECISION_COLUMNS}
        rows={rows}
        rowKey={(row) => `${row.id} ${row.decided_at}`}
        loading={list.isPending}
        onOpen={({ namespace, workload_name: name }) =>
          void navigate({ to: "/workloads/$namespace/$name", params: { namespace, name } })
        }
        onEnd={list.hasNextPage ? more : undefined}
        loadingMore={list.isFetchingNextPage}
        height="max(420px, calc(100dvh - 180px))"
        empty={
          <EmptyState
            icon="clock"
            title={Object.keys(filters).length > 0 ? "No decision matches" : "Nothing decided yet"}
          >
            Every admission, preemption, eviction and refusal is recorded here with its reason, and is kept
            after the workload is deleted.
          </EmptyState>
        }
      />
    </Panel>
  );
}

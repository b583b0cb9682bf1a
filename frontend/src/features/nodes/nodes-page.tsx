/** The nodes: whether each takes pods, and how much of it is asked for. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Box, Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useCluster, useClusterOf, useInCluster } from "@/api/cluster";
import { nodesQuery } from "@/api/nodes";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { DataTable } from "@/components/table/data-table";
import { ChoiceFilter, FilterRow, LabelFilter, TextFilter } from "@/components/table/filters";
import { type NodeFilters, parseNodeFilters } from "@/lib/url/node-filters";
import { NODE_STATES, nodeStateLooks } from "@/lib/words/node-state";
import { NODE_COLUMNS } from "./node-columns";
import { countNodeStates, matchesNodeFilters, type NodeRow, nodeRow, sortNodes } from "./summary";

export interface NodesPageProps {
  filters: NodeFilters;
  onFilter: (filters: NodeFilters) => void;
}

export function NodesPage({ history, ...props }: NodesPageProps & { history: ReactNode }) {
  const nodes = useQuery(nodesQuery(useCluster()));
  const rows = useMemo(() => nodes.data?.map(nodeRow) ?? [], [nodes.data]);
  return (
    <>
      <PageHeader title={t`Nodes`} />
      <Filters rows={rows} {...props} />
      {nodes.error !== null && rows.length === 0 ? (
        <QueryError title={t`The nodes cannot be shown`} query={nodes} />
      ) : (
        <NodeTable rows={rows} loading={nodes.isPending} {...props} />
      )}
      {history !== null && <Box mt="lg">{history}</Box>}
    </>
  );
}

function Filters({ rows, filters, onFilter }: NodesPageProps & { rows: NodeRow[] }) {
  const states = useMemo(() => countNodeStates(rows), [rows]);
  const flavors = useMemo(() => [...new Set(rows.flatMap((row) => row.node.flavors))].sort(), [rows]);
  const set = (change: Record<string, string | null>) =>
    onFilter(parseNodeFilters({ ...filters, ...change }));
  const { sort: _, ...chosen } = filters;
  return (
    <FilterRow onClear={Object.keys(chosen).length > 0 ? () => onFilter({}) : undefined}>
      <TextFilter
        search
        label={t`Search nodes by name`}
        placeholder={t`Search nodes`}
        value={filters.search}
        onChange={(search) => set({ search })}
      />
      <ChoiceFilter
        label={t`State`}
        choices={NODE_STATES.map((state) => ({
          value: state,
          label: `${nodeStateLooks()[state].label} (${states.get(state) ?? 0})`,
        }))}
        value={filters.state}
        onChange={(state) => set({ state })}
      />
      <ChoiceFilter
        label={t`Flavor`}
        choices={flavors}
        value={filters.flavor}
        onChange={(flavor) => set({ flavor })}
      />
      <LabelFilter value={filters.label} onChange={(label) => set({ label })} />
    </FilterRow>
  );
}

const clusterOfRow = ({ node }: NodeRow) => node.cluster;

function NodeTable({
  rows,
  loading,
  filters,
  onFilter,
}: NodesPageProps & { rows: NodeRow[]; loading: boolean }) {
  const navigate = useNavigate();
  const inCluster = useInCluster();
  const shown = useMemo(
    () =>
      sortNodes(
        rows.filter((row) => matchesNodeFilters(row, filters)),
        filters.sort,
      ),
    [rows, filters],
  );
  return (
    <Panel flush>
      <DataTable
        label={t`Nodes`}
        columns={NODE_COLUMNS}
        rows={shown}
        rowKey={({ node }) => `${node.cluster}/${node.name}`}
        clusterOf={useClusterOf(clusterOfRow)}
        loading={loading}
        onOpen={({ node }) =>
          void navigate({ to: "/nodes/$name", params: { name: node.name }, ...inCluster(node) })
        }
        sort={filters.sort ?? "name"}
        onSort={(sort) => {
          const { sort: _, ...others } = filters;
          onFilter(sort === undefined ? others : { ...others, sort });
        }}
        height="max(420px, calc(100dvh - 180px))"
        empty={
          rows.length === 0 ? (
            <EmptyState icon="nodes" title={t`No nodes are known`}>
              <Trans>
                Nodes appear here when the cluster's watcher sees them or their manifests are applied. Without
                nodes, only quota decides.
              </Trans>
            </EmptyState>
          ) : (
            <EmptyState
              icon="filter"
              title={t`No node matches these filters`}
              action={
                <Button variant="light" size="xs" mt="xs" onClick={() => onFilter({})}>
                  <Trans>Clear all filters</Trans>
                </Button>
              }
            />
          )
        }
      />
    </Panel>
  );
}

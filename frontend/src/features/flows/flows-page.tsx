/** The flows: jobs that start after each other, how far each flow is, and its state. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Code } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import { jobFlowsQuery } from "@/api/jobs/job-flows";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { FilterRow, TextFilter } from "@/components/table/filters";
import { PagedTable, renewTop } from "@/components/table/paged-table";
import { type FlowFilters, parseFlowFilters } from "@/lib/url/flow-filters";
import { FLOW_COLUMNS } from "./flow-columns";

export interface FlowsPageProps {
  filters: FlowFilters;
  onFilter: (filters: FlowFilters) => void;
}

const RENEW_MS = 5_000;

export function FlowsPage({ filters, onFilter }: FlowsPageProps) {
  const navigate = useNavigate();
  const list = useInfiniteQuery({
    ...jobFlowsQuery(useCluster(), filters.search),
    refetchInterval: renewTop(RENEW_MS),
  });
  return (
    <>
      <PageHeader
        title={t`Flows`}
        facts={t`Jobs that start after each other. A job starts once all the jobs before it have succeeded.`}
      />
      <FilterRow onClear={filters.search === undefined ? undefined : () => onFilter({})}>
        <TextFilter
          search
          label={t`Search flows by name`}
          placeholder={t`Search flows`}
          value={filters.search}
          onChange={(search) => onFilter(parseFlowFilters({ search }))}
        />
      </FilterRow>
      <PagedTable
        label={t`Flows`}
        list={list}
        columns={FLOW_COLUMNS}
        rowKey={({ namespace, name }) => `${namespace}/${name}`}
        onOpen={({ namespace, name }) =>
          void navigate({ to: "/flows/$namespace/$name", params: { namespace, name } })
        }
        empty={
          <EmptyState
            icon="flows"
            title={filters.search === undefined ? t`No flows yet` : t`No flow matches`}
          >
            <Trans>
              Apply a JobFlow together with its JobTemplates, and it is listed here until its last job is
              deleted: <Code>kueueweb apply -f flow.yaml</Code>. Single jobs start after others by the
              annotation <Code>kueueweb.io/start-after</Code>.
            </Trans>
          </EmptyState>
        }
      />
    </>
  );
}

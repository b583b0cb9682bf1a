/** The workloads with their states, and why they wait. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, Text } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { useInfiniteQuery, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { useCluster, useClusterOf, useInCluster, useIsSeveral } from "@/api/cluster";
import { useIsPast } from "@/api/past/past";
import { isMirrored, maySubmitSomewhere, sessionQuery } from "@/api/session";
import type { Workload } from "@/api/types";
import { workloadCountsQuery, workloadsQuery } from "@/api/workloads";
import { EmptyState } from "@/components/empty-state";
import { Icon } from "@/components/icon";
import { PageHeader } from "@/components/page-header";
import { PagedTable, useRows } from "@/components/table/paged-table";
import { annotationsOf, formatWidths, parseColumns, parseWidths } from "@/lib/list/columns";
import { formatCount } from "@/lib/quantity";
import { formatClock } from "@/lib/time";
import { countFilters, type WorkloadFilters, type WorkloadView } from "@/lib/url/workload-filters";
import { SubmitModal } from "../submit/submit-modal";
import { BulkBar } from "./bulk-bar";
import { FilterBar } from "./filter-bar";
import { SavedViews } from "./saved-views";
import { useSelection } from "./selection";
import { ViewBar } from "./view-bar";
import { columnsWith, hiddenColumns } from "./workload-columns";
import { WorkloadGroups } from "./workload-groups";

const WorkloadPanel = lazy(async () => ({
  default: (await import("./workload-panel")).WorkloadPanel,
}));

export interface WorkloadsPageProps {
  filters: WorkloadFilters;
  view: WorkloadView;
  /** The workload that stands beside the list, as namespace/name. */
  opened: string | undefined;
  onOpened: (open: string | undefined) => void;
  onFilter: (filters: WorkloadFilters) => void;
  onView: (view: WorkloadView) => void;
  /** Both at once: into a group. */
  onDrill: (filters: WorkloadFilters, view: WorkloadView) => void;
}

export function WorkloadsPage({
  filters,
  view,
  opened,
  onOpened,
  onFilter,
  onView,
  onDrill,
}: WorkloadsPageProps) {
  const mayWrite = useMayWrite();
  const several = useIsSeveral();
  const [submitting, submit] = useDisclosure(false);
  return (
    <>
      <PageHeader
        title={t`Workloads`}
        actions={
          mayWrite && (
            <Button leftSection={<Icon name="plus" size={16} />} onClick={submit.open}>
              <Trans>Submit</Trans>
            </Button>
          )
        }
      />
      <FilterBar
        filters={filters}
        onFilter={onFilter}
        aside={
          <>
            <ViewBar view={view} onView={onView} />
            <SavedViews present={{ ...filters, ...view }} onOpen={onDrill} />
          </>
        }
      />
      {view.group === undefined ? (
        <WorkloadTable
          filters={filters}
          view={view}
          onView={onView}
          onOpened={onOpened}
          onClear={() => onFilter({})}
        />
      ) : (
        <WorkloadGroups
          by={view.group}
          filters={filters}
          onOpen={(inside) => {
            const { group: _, ...rest } = view;
            onDrill(inside, rest);
          }}
        />
      )}
      {opened !== undefined && !several && (
        <Suspense>
          <WorkloadPanel reference={referenceOf(opened)} onClose={() => onOpened(undefined)} />
        </Suspense>
      )}
      <SubmitModal opened={submitting} onClose={submit.close} />
    </>
  );
}

/** On a narrower screen a panel would cover the list: there, and of several clusters, a row leads to its page. */
const ROOM_BESIDE = "(min-width: 62em)";

function referenceOf(opened: string) {
  const [namespace = "", name = ""] = opened.split("/");
  return { namespace, name };
}

const clusterOfRow = ({ cluster }: Workload) => cluster;

/** Whether the reader may write to the cluster on screen; what is done to workloads is done in one cluster. */
function useMayWrite(): boolean {
  const cluster = useCluster();
  const several = useIsSeveral();
  const { data: session } = useSuspenseQuery(sessionQuery());
  return !several && maySubmitSomewhere(session) && !isMirrored(session, cluster);
}

interface WorkloadTableProps extends Pick<WorkloadsPageProps, "filters" | "view" | "onView" | "onOpened"> {
  onClear: () => void;
}

function WorkloadTable({ filters, view, onView, onOpened, onClear }: WorkloadTableProps) {
  const cluster = useCluster();
  const navigate = useNavigate();
  const inCluster = useInCluster();
  const wide = useMediaQuery(ROOM_BESIDE, undefined, { getInitialValueInEffect: false }) ?? false;
  const several = useIsSeveral();
  const beside = wide && !several;
  const added = useMemo(() => parseColumns(view.columns), [view.columns]);
  const columns = useMemo(() => columnsWith(added), [added]);
  const widths = useMemo(() => parseWidths(view.widths), [view.widths]);
  const list = useInfiniteQuery(workloadsQuery(cluster, filters, view.sort, annotationsOf(added)));
  const rows = useRows(list);
  const total = useQuery(workloadCountsQuery(cluster, "state", filters)).data?.total;
  const mayWrite = useMayWrite();
  const hidden = useMemo(() => hiddenColumns(view), [view]);
  const selection = useSelection(cluster, filters, rows);
  return (
    <>
      <BulkBar selection={selection} total={total} />
      <PagedTable
        label={t`Workloads`}
        list={list}
        columns={columns}
        rowKey={(row) => row.uid}
        selection={mayWrite ? { keys: selection.chosen, onChange: selection.choose } : undefined}
        onOpen={({ cluster: home, namespace, name }) => {
          if (beside) onOpened(`${namespace}/${name}`);
          else
            void navigate({
              to: "/workloads/$namespace/$name",
              params: { namespace, name },
              ...inCluster({ cluster: home }),
            });
        }}
        clusterOf={useClusterOf(clusterOfRow)}
        hidden={hidden}
        widths={widths}
        onWidths={(next) => {
          const { widths: _, ...others } = view;
          onView(next === undefined ? others : { ...others, widths: formatWidths(next) });
        }}
        sort={view.sort ?? "-id"}
        onSort={(sort) => {
          const { sort: _, ...others } = view;
          onView(sort === undefined ? others : { ...others, sort });
        }}
        empty={<NoWorkloads filtered={countFilters(filters) > 0} onClear={onClear} />}
        foot={
          <Group
            justify="space-between"
            px="md"
            py={8}
            c="var(--kw-muted)"
            style={{ borderTop: "1px solid var(--kw-line)" }}
          >
            <Text fz="xs" className="kw-number">
              <Trans>
                {formatCount(rows.length)} of {total === undefined ? "…" : formatCount(total)} loaded
              </Trans>
            </Text>
            <Group gap={4}>
              <Text fz="xs" className="kw-number" role={list.error === null ? undefined : "alert"}>
                {list.isPending
                  ? t`loading`
                  : list.error === null
                    ? t`as of ${formatClock(list.dataUpdatedAt)}`
                    : t`not updated since ${formatClock(list.dataUpdatedAt)}: ${list.error.message}`}
              </Text>
              <ActionIcon
                size="sm"
                variant="subtle"
                color="gray"
                aria-label={t`Reload the list`}
                onClick={() => void list.refetch()}
              >
                <Icon name="refresh" size={13} />
              </ActionIcon>
            </Group>
          </Group>
        }
      />
    </>
  );
}

function NoWorkloads({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  const isPast = useIsPast();
  if (!filtered && isPast) return <EmptyState icon="workloads" title={t`No workloads at that moment`} />;
  if (!filtered) {
    return (
      <EmptyState icon="workloads" title={t`No workloads yet`}>
        <Trans>
          Submit a manifest here, POST to /api/v1/workloads/, or create a Job with a queue name in the
          cluster.
        </Trans>
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon="filter"
      title={t`No workload matches these filters`}
      action={
        <Button variant="light" size="xs" mt="xs" onClick={onClear}>
          <Trans>Clear all filters</Trans>
        </Button>
      }
    />
  );
}

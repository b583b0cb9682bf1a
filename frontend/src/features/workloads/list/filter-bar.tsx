/** The filters above the list; each stands in the URL. */
import { t } from "@lingui/core/macro";
import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { nodesQuery } from "@/api/nodes";
import { localQueuesQuery, namesQuery } from "@/api/queues";
import { workloadCountsQuery } from "@/api/workloads";
import { ChoiceFilter, FilterRow, TextFilter } from "@/components/table/filters";
import { formatCount } from "@/lib/quantity";
import { parseWorkloadTimeRange } from "@/lib/url/time-range";
import { countFilters, parseWorkloadFilters, type WorkloadFilters } from "@/lib/url/workload-filters";
import { PENDING_REASONS, shortReason } from "@/lib/words/pending-reason";
import { stateLook, WORKLOAD_STATES, type WorkloadState } from "@/lib/words/workload-state";
import classes from "../workloads.module.css";
import { LabelFilter } from "./label-filter";
import { TimeFilter } from "./time-filter";

export interface FilterBarProps {
  filters: WorkloadFilters;
  onFilter: (filters: WorkloadFilters) => void;
  /** At the end of the row. */
  aside: ReactNode;
}

const ALL = "all";
const NO_TIME = { time: null, last: null, since: null, until: null };

/** Always on screen; the other states are while a workload is in them. */
const MAIN_STATES: readonly WorkloadState[] = ["Pending", "Running", "Succeeded", "Failed"];

/** The states with how many workloads match the other filters. */
function useStateChoices({ state, ...others }: WorkloadFilters) {
  const counts = useQuery(workloadCountsQuery(useCluster(), "state", others)).data;
  const withCount = (label: string, count: number | undefined) => (
    <span className="kw-number">
      {label}
      {count !== undefined && <span className={classes.tabCount}> {formatCount(count)}</span>}
    </span>
  );
  const countOf = (name: string) => counts?.groups.find(({ value }) => value === name)?.count ?? 0;
  return [
    { value: ALL, label: withCount(t`All`, counts?.total) },
    ...WORKLOAD_STATES.filter(
      (each) => each === state || MAIN_STATES.includes(each) || countOf(each) > 0,
    ).map((each) => ({
      value: each as string,
      label: withCount(stateLook(each).label, counts === undefined ? undefined : countOf(each)),
    })),
  ];
}

export function FilterBar({ filters, onFilter, aside }: FilterBarProps) {
  const cluster = useCluster();
  const namespaces = useQuery(namesQuery(cluster, "namespaces"));
  const clusterQueues = useQuery(namesQuery(cluster, "cluster-queues"));
  const priorityClasses = useQuery(namesQuery(cluster, "workload-priority-classes"));
  const localQueues = useQuery(localQueuesQuery(cluster));
  const stateChoices = useStateChoices(filters);
  const users = useQuery(workloadCountsQuery(cluster, "submitted_by", {}));
  const nodes = useQuery(nodesQuery(cluster));
  const queues = useLive((live) => live.data?.cluster_queues);
  const resources = useMemo(
    () =>
      [
        ...new Set(Object.values(queues ?? {}).flatMap(({ usage }) => usage.map(({ resource }) => resource))),
      ].sort(),
    [queues],
  );
  const localQueueNames = [...new Set(localQueues.data?.results.map((queue) => queue.name))].sort();
  const set = (change: Record<string, string | null>) =>
    onFilter(parseWorkloadFilters({ ...filters, ...change }));

  return (
    <div className={classes.filters}>
      <SegmentedControl
        aria-label={t`Status`}
        size="xs"
        className={classes.statuses}
        data={stateChoices}
        value={filters.state ?? ALL}
        onChange={(state) => set({ state: state === ALL ? null : state })}
      />
      <FilterRow onClear={countFilters(filters) > 0 ? () => onFilter({}) : undefined} aside={aside}>
        <TextFilter
          search
          label={t`Search by name`}
          value={filters.search}
          onChange={(search) => set({ search })}
        />
        <ChoiceFilter
          label={t`Namespace`}
          choices={namespaces.data}
          value={filters.namespace}
          onChange={(namespace) => set({ namespace })}
        />
        <ChoiceFilter
          label={t`ClusterQueue`}
          choices={clusterQueues.data}
          value={filters.cluster_queue}
          onChange={(name) => set({ cluster_queue: name })}
        />
        <ChoiceFilter
          label={t`LocalQueue`}
          choices={localQueueNames}
          value={filters.local_queue}
          onChange={(name) => set({ local_queue: name })}
        />
        <ChoiceFilter
          label={t`Priority class`}
          choices={priorityClasses.data}
          value={filters.priority_class}
          onChange={(name) => set({ priority_class: name })}
        />
        <ChoiceFilter
          label={t`Reason`}
          choices={PENDING_REASONS.map((reason) => ({ value: reason, label: shortReason(reason) }))}
          value={filters.reason}
          onChange={(reason) => set({ reason })}
        />
        <ChoiceFilter
          label={t`Submitted by`}
          choices={users.data?.groups.flatMap(({ value }) => (value === "" ? [] : [value])).sort()}
          value={filters.submitted_by}
          onChange={(user) => set({ submitted_by: user })}
        />
        <ChoiceFilter
          label={t`Node`}
          choices={[...new Set(nodes.data?.map(({ name }) => name))]}
          value={filters.node}
          onChange={(node) => set({ node })}
        />
        <ChoiceFilter
          label={t`Requests`}
          choices={resources}
          value={filters.resource}
          onChange={(resource) => set({ resource })}
        />
        <LabelFilter value={filters.label} onChange={(label) => set({ label })} />
        <TimeFilter
          range={parseWorkloadTimeRange(filters)}
          onChange={(range) => set({ ...NO_TIME, ...range })}
        />
      </FilterRow>
    </div>
  );
}

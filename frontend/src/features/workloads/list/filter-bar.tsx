/** The filters above the list; each stands in the URL. */
import { Button, Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useCluster } from "@/api/cluster";
import { localQueuesQuery, namesQuery } from "@/api/queues";
import { workloadCountsQuery } from "@/api/workloads";
import { Icon } from "@/components/icon";
import { PENDING_SENTENCES } from "@/lib/pending-reason";
import { formatCount } from "@/lib/quantity";
import { countFilters, parseWorkloadFilters, type WorkloadFilters } from "@/lib/workload-filters";
import { statusLook, WORKLOAD_STATUSES } from "@/lib/workload-status";
import classes from "../workloads.module.css";

export interface FilterBarProps {
  filters: WorkloadFilters;
  onFilter: (filters: WorkloadFilters) => void;
}

const ALL = "all";

/** The statuses with how many workloads match the other filters. */
function useStatusChoices({ status: _, ...others }: WorkloadFilters) {
  const counts = useQuery(workloadCountsQuery(useCluster(), "status", others)).data;
  const withCount = (label: string, count: number | undefined) => (
    <span className="kw-number">
      {label}
      {count !== undefined && <span className={classes.tabCount}> {formatCount(count)}</span>}
    </span>
  );
  const countOf = (status: string) => counts?.groups.find(({ value }) => value === status)?.count ?? 0;
  return [
    { value: ALL, label: withCount("All", counts?.total) },
    ...WORKLOAD_STATUSES.map((status) => ({
      value: status as string,
      label: withCount(statusLook(status).label, counts === undefined ? undefined : countOf(status)),
    })),
  ];
}

export function FilterBar({ filters, onFilter }: FilterBarProps) {
  const cluster = useCluster();
  const namespaces = useQuery(namesQuery(cluster, "namespaces"));
  const clusterQueues = useQuery(namesQuery(cluster, "cluster-queues"));
  const priorityClasses = useQuery(namesQuery(cluster, "workload-priority-classes"));
  const localQueues = useQuery(localQueuesQuery(cluster));
  const statusChoices = useStatusChoices(filters);
  const users = useQuery(workloadCountsQuery(cluster, "submitted_by", {}));
  const localQueueNames = [...new Set(localQueues.data?.results.map((queue) => queue.name))].sort();
  const set = (change: Record<string, string | null>) =>
    onFilter(parseWorkloadFilters({ ...filters, ...change }));

  return (
    <div className={classes.filters}>
      <SegmentedControl
        aria-label="Status"
        size="xs"
        className={classes.statuses}
        data={statusChoices}
        value={filters.status ?? ALL}
        onChange={(status) => set({ status: status === ALL ? null : status })}
      />
      <Group gap="xs" className={classes.choices}>
        <SearchInput value={filters.search ?? ""} onSearch={(search) => set({ search })} />
        <Choice
          label="Namespace"
          names={namespaces.data}
          value={filters.namespace}
          onChoose={(namespace) => set({ namespace })}
        />
        <Choice
          label="ClusterQueue"
          names={clusterQueues.data}
          value={filters.cluster_queue}
          onChoose={(name) => set({ cluster_queue: name })}
        />
        <Choice
          label="LocalQueue"
          names={localQueueNames}
          value={filters.local_queue}
          onChoose={(name) => set({ local_queue: name })}
        />
        <Choice
          label="Priority class"
          names={priorityClasses.data}
          value={filters.priority_class}
          onChoose={(name) => set({ priority_class: name })}
        />
        <Choice
          label="Reason"
          names={Object.keys(PENDING_SENTENCES)}
          value={filters.reason}
          onChoose={(reason) => set({ reason })}
        />
        <Choice
          label="Submitted by"
          names={users.data?.groups.flatMap(({ value }) => (value === "" ? [] : [value])).sort()}
          value={filters.submitted_by}
          onChoose={(user) => set({ submitted_by: user })}
        />
        {countFilters(filters) > 0 && (
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
    </div>
  );
}

interface ChoiceProps {
  label: string;
  names: string[] | undefined;
  value: string | undefined;
  onChoose: (name: string | null) => void;
}

function Choice({ label, names = [], value, onChoose }: ChoiceProps) {
  // A value from the URL stays selectable even where the list does not hold it.
  const data = value === undefined || names.includes(value) ? names : [value, ...names];
  return (
    <Select
      aria-label={label}
      placeholder={label}
      size="xs"
      className={classes.choice}
      searchable
      clearable
      limit={100}
      data={data}
      value={value ?? null}
      onChange={onChoose}
      nothingFoundMessage="Nothing with this name"
    />
  );
}

const TYPING_MS = 300;

function SearchInput({ value, onSearch }: { value: string; onSearch: (text: string) => void }) {
  const [text, setText] = useState(value);
  const later = useDebouncedCallback(onSearch, TYPING_MS);
  useEffect(() => setText(value), [value]);
  return (
    <TextInput
      type="search"
      aria-label="Search by name"
      placeholder="Search by name  ( / )"
      size="xs"
      className={classes.search}
      leftSection={<Icon name="search" size={14} />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        later(event.currentTarget.value);
      }}
    />
  );
}

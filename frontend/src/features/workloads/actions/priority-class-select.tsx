/** Chooses one of the cluster's WorkloadPriorityClasses. */
import { t } from "@lingui/core/macro";
import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { namesQuery } from "@/api/queues";

export interface PriorityClassSelectProps {
  /** Empty for none. */
  value: string;
  onChange: (name: string) => void;
}

export function PriorityClassSelect({ value, onChange }: PriorityClassSelectProps) {
  const classes = useQuery(namesQuery(useCluster(), "workload-priority-classes"));
  return (
    <Select
      label={t`WorkloadPriorityClass`}
      data={classes.data ?? []}
      value={value === "" ? null : value}
      onChange={(chosen) => onChange(chosen ?? "")}
      searchable
    />
  );
}

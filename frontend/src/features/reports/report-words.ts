/** The names of groups and columns of reports. */
import { t } from "@lingui/core/macro";
import type { Report } from "@/api/reports";

export const groupTitles = (): Record<string, string> => ({
  cluster: t`Cluster`,
  cluster_queue: t`ClusterQueue`,
  local_queue: t`LocalQueue`,
  namespace: t`Namespace`,
  user: t`User name`,
  priority: t`Priority`,
  size: t`Size`,
  month: t`Month`,
  flavor: t`Flavor`,
  day: t`Day`,
  preemptor: t`Preemptor`,
  preemptor_cluster_queue: t`Preemptor's ClusterQueue`,
  preemptor_namespace: t`Preemptor's namespace`,
  reason: t`Reason`,
  workload: t`Workload`,
  holder: t`Held by`,
});

/** The names of a report's columns; an unknown one keeps the server's title. */
const columnTitles = (): Record<string, string> => ({
  ...groupTitles(),
  resource: t`Resource`,
  hours: t`Unit-hours`,
  quota_hours: t`Nominal quota`,
  cost: t`Cost`,
  currency: t`Currency`,
  held_device_hours: t`GPU-hours held`,
  idle_device_hours: t`GPU-hours idle`,
  unmeasured_device_hours: t`GPU-hours not measured`,
  memory_used_percent: t`Held memory used`,
  cores_used_percent: t`Held cores used`,
  idle_cost: t`Cost of idle time`,
  preemptions: t`Preemptions`,
  workloads: t`Workloads preempted`,
  last_at: t`Last preemption`,
  lost_device_hours: t`GPU-hours lost`,
  other_cluster_queue: t`Other ClusterQueue`,
  turns: t`Turns`,
  displaced: t`Displaced the other queue`,
  displaced_by: t`Displaced by the other queue`,
  missing_hours: t`Shortfall while workloads waited`,
  below_seconds: t`Time below quota`,
  used_percent: t`Used of quota`,
  entitled_hours: t`Quota`,
  used_hours: t`Used`,
  held_hours: t`Held of the shortfall`,
  held_percent: t`Share of the shortfall`,
  started: t`Started`,
  wait_p50_seconds: t`Median wait`,
  wait_p90_seconds: t`90th percentile`,
  wait_max_seconds: t`Longest wait`,
  finished: t`Finished`,
  failed: t`Failed`,
  run_mean_seconds: t`Mean run time`,
  preempted: t`Preempted`,
  evicted: t`Evicted`,
  device_hours: t`GPU-hours`,
});

export function columnTitle({ name, title }: Report["columns"][number]): string {
  return columnTitles()[name] ?? title;
}

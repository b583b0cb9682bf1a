/** The cluster's history, on the overview. */
import { waiting } from "@/api/live/live-data";
import type { LiveData } from "@/api/types";
import { DEVICE_METRICS, DeviceCharts, deviceTail } from "./device-charts";
import { HistorySection } from "./history-section";
import { useHistory } from "./use-history";
import { WORKLOAD_METRICS, WorkloadCharts } from "./workload-charts";

const METRICS = [...WORKLOAD_METRICS, ...DEVICE_METRICS];

function read(data: LiveData) {
  return [
    { metric: "pending" as const, value: waiting(data.totals) },
    { metric: "admitted" as const, value: data.totals.admitted },
    ...deviceTail(data),
  ];
}

export function ClusterHistory() {
  const { frame, error, refetch } = useHistory({ scope: "cluster", metrics: METRICS }, read);
  return (
    <HistorySection marks={frame} error={error} onRetry={() => void refetch()}>
      <WorkloadCharts {...frame} />
      <DeviceCharts {...frame} cores={false} />
    </HistorySection>
  );
}

/** The cluster's history, on the overview. */
import { useState } from "react";
import { waiting } from "@/api/live/live-data";
import type { LiveData } from "@/api/types";
import { DEVICE_METRICS, DemandChart, DeviceCharts, deviceTail } from "./device-charts";
import { HistorySection } from "./history-section";
import { useHistory } from "./use-history";
import { WORKLOAD_METRICS, WorkloadCharts } from "./workload-charts";

const METRICS = [...WORKLOAD_METRICS, ...DEVICE_METRICS, "devices_demanded"] as const;

function read(data: LiveData) {
  return [
    { metric: "pending" as const, value: waiting(data.totals) },
    { metric: "admitted" as const, value: data.totals.admitted },
    ...deviceTail(data),
  ];
}

/** One chart as wide as the page; the others after a click. */
export function ClusterHistory() {
  const { frame, error, refetch } = useHistory({ scope: "cluster", metrics: METRICS }, read);
  const [folded, setFolded] = useState(true);
  return (
    <HistorySection
      marks={frame}
      error={error}
      onRetry={() => void refetch()}
      fold={{ folded, onFold: setFolded }}
    >
      <DemandChart {...frame} />
      {!folded && (
        <>
          <WorkloadCharts {...frame} />
          <DeviceCharts {...frame} cores={false} />
        </>
      )}
    </HistorySection>
  );
}

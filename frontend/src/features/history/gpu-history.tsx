/** The history of all devices, on the page of GPUs. */
import { DEVICE_METRICS, DeviceCharts, deviceTail } from "./device-charts";
import { HistorySection } from "./history-section";
import { useHistory } from "./use-history";

export function GpuHistory() {
  const selection = { scope: "cluster" as const, metrics: DEVICE_METRICS };
  const { frame, error, refetch } = useHistory(selection, deviceTail);
  return (
    <HistorySection marks={frame} error={error} onRetry={() => void refetch()}>
      <DeviceCharts {...frame} />
    </HistorySection>
  );
}

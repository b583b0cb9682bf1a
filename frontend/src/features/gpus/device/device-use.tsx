/** The measured use of a device in the last hour, beside the held amounts. Without a monitor there is no number, not 0. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { deviceSamplesQuery } from "@/api/devices";
import { TimeSeries } from "@/components/figures/time-series";

const percent = (value: number) => `${Math.round(value)} %`;

export function DeviceUse({ uuid, memoryMib }: { uuid: string; memoryMib: number }) {
  const samples = useQuery(deviceSamplesQuery(useCluster(), uuid));
  if (samples.isPending) return <Skeleton height={80} />;
  const rows = samples.data?.results.toSorted((a, b) => a.at.localeCompare(b.at)) ?? [];
  if (rows.length === 0) {
    return (
      <Text fz="sm" c="var(--kw-muted)">
        <Trans>Use in the last hour: no data.</Trans>{" "}
        {samples.error === null ? t`No monitor reports this device.` : samples.error.message}
      </Text>
    );
  }
  return (
    <div>
      <Text fz="sm" fw={550} mb={4}>
        <Trans>Use in the last hour</Trans>
      </Text>
      <TimeSeries
        label={t`Use of the device in the last hour`}
        times={rows.map((row) => Date.parse(row.at) / 1000)}
        version={rows.at(-1)?.at}
        format={percent}
        atLeast={100}
        height={140}
        lines={[
          {
            label: t`Cores busy`,
            color: "var(--kw-used)",
            values: rows.map((row) => row.utilization_percent),
          },
          {
            label: t`Memory in use`,
            color: "var(--kw-borrowed)",
            values: rows.map((row) =>
              row.memory_used_mib === null ? null : (100 * row.memory_used_mib) / memoryMib,
            ),
          },
        ]}
      />
    </div>
  );
}

/** How busy and how hot a node's devices were over time, as their monitors report it. Without a monitor nothing is shown. */
import { t } from "@lingui/core/macro";
import { SegmentedControl, SimpleGrid } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { deviceSamplesQuery, USE_RANGES, type UseRange } from "@/api/devices";
import { TimeSeries } from "@/components/figures/time-series";
import { Panel } from "@/components/panel";
import { nodeUse } from "./node-use-series";

const CURSOR = "node-use";
const percent = (value: number) => `${Math.round(value)} %`;
const celsius = (value: number) => `${Math.round(value)} °C`;

export interface NodeUseProps {
  devices: readonly { uuid: string; memory_mib: number }[];
}

export function NodeUse({ devices }: NodeUseProps) {
  const cluster = useCluster();
  const [range, setRange] = useState<UseRange>("1h");
  const { series, read } = useQueries({
    queries: devices.map(({ uuid }) => deviceSamplesQuery(cluster, uuid, range)),
    combine: (answers) => ({
      read: answers.every(({ isPending }) => !isPending),
      series: nodeUse(
        answers.map(({ data }, place) => ({
          memoryMib: devices[place]?.memory_mib ?? 0,
          samples: data?.results ?? [],
        })),
        USE_RANGES[range].stepSeconds,
      ),
    }),
  });
  if (range === "1h" && (!read || series.times.length === 0)) return null;
  const frame = { times: series.times, version: series, cursor: CURSOR, height: 150 };
  return (
    <Panel
      title={t`Use over time`}
      aside={
        <SegmentedControl
          aria-label={t`Period`}
          size="xs"
          data={[
            { value: "1h", label: t`1 hour` },
            { value: "24h", label: t`24 hours` },
            { value: "14d", label: t`14 days` },
          ]}
          value={range}
          onChange={setRange}
        />
      }
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TimeSeries
          {...frame}
          label={t`Mean use of the node's devices`}
          format={percent}
          atLeast={100}
          lines={[
            { label: t`Cores busy`, color: "var(--kw-used)", values: series.busy, fill: true },
            { label: t`Memory in use`, color: "var(--kw-borrowed)", values: series.memory },
          ]}
        />
        <TimeSeries
          {...frame}
          label={t`Temperature of the hottest device`}
          format={celsius}
          lines={[{ label: t`Hottest device`, color: "var(--kw-used)", values: series.hottest }]}
        />
      </SimpleGrid>
    </Panel>
  );
}

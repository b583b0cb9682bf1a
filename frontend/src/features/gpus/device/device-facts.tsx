/** The condition of a device: its health, its measurements and its mode. A missing measurement is no number, not 0. */
import { t } from "@lingui/core/macro";
import { Stack, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useRef, useState } from "react";
import { useCluster } from "@/api/cluster";
import { deviceQuery, deviceUsageQuery } from "@/api/devices";
import type { LiveDevice } from "@/api/types";
import { KeyValues } from "@/components/key-values";
import { numbers } from "@/lib/language";
import { formatMib } from "@/lib/quantity";
import { gpuState } from "@/lib/url/gpu-filters";
import { deviceModel } from "@/lib/words/device-words";
import { gpuStateLooks } from "../gpu-state";
import classes from "../gpus.module.css";
import { deviceTitle, formatCores } from "../units";

interface DeviceProps {
  uuid: string;
  device: LiveDevice;
}

const wholeNumber = numbers({ maximumFractionDigits: 0 });

function useFacts({ uuid, device }: DeviceProps): [string, string][] {
  const cluster = useCluster();
  const row = useQuery(deviceQuery(cluster, uuid)).data;
  const usage = useQuery(deviceUsageQuery(cluster));
  const use = usage.data?.results.find((each) => each.uuid === uuid);
  const measured = (value: number | null | undefined, words: (value: number) => string) => {
    if (usage.isPending) return "…";
    return value === null || value === undefined ? t`no telemetry` : words(value);
  };
  const cores = (value: number) => t`${wholeNumber(value)} % busy, ${formatCores(device.units)} held`;
  const memory = (value: number) =>
    t`${formatMib(Math.round(value))} in use, ${formatMib(device.used_memory_mib)} of ${formatMib(device.memory_mib)} held`;
  return [
    [t`Health`, device.health ? t`healthy` : t`unhealthy`],
    [t`Temperature`, measured(use?.temperature_celsius, (value) => t`${wholeNumber(value)} °C`)],
    [t`Power`, measured(use?.power_watts, (value) => t`${wholeNumber(value)} W`)],
    [t`Memory`, measured(use?.memory_used_mib, memory)],
    [t`Cores`, measured(use?.utilization_percent, cores)],
    ...(row === undefined
      ? []
      : ([
          [t`Mode`, row.mode === "" ? t`not reported` : row.mode],
          [t`NUMA node`, String(row.numa)],
        ] as [string, string][])),
  ];
}

export function DeviceFacts(props: DeviceProps) {
  return <KeyValues rows={useFacts(props)} />;
}

const PAUSE_MS = 300;

/** Whether the pointer rests on an element, or it has the focus. */
export function useRest() {
  const element = useRef<HTMLButtonElement>(null);
  const [rests, setRests] = useState(false);
  const timer = useRef<number>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const leave = () => {
    window.clearTimeout(timer.current);
    setRests(false);
  };
  const arrive = () => {
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setRests(true), PAUSE_MS);
  };
  const handlers = { onMouseEnter: arrive, onMouseLeave: leave, onFocus: arrive, onBlur: leave };
  return { element, rests, handlers };
}

/** The facts of one card among thousands, read and drawn only while the reader looks at it. */
export function DeviceHint({ target, ...props }: DeviceProps & { target: RefObject<HTMLElement | null> }) {
  const { device } = props;
  const facts = useFacts(props);
  const state = gpuStateLooks()[gpuState(device)];
  return (
    <Tooltip
      opened
      target={target}
      position="bottom"
      label={
        <Stack gap={2}>
          <b>{deviceTitle(device)}</b>
          <span>
            {deviceModel(device.type)}: {state.label}, {state.meaning}
          </span>
          <dl className={classes.hint}>
            {facts.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </Stack>
      }
    />
  );
}

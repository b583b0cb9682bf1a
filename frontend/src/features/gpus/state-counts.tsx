/** How many devices are free, shared, full or ill; each is a filter. */
import { t } from "@lingui/core/macro";
import { UnstyledButton } from "@mantine/core";
import { useMemo } from "react";
import { formatCount } from "@/lib/quantity";
import { GPU_STATES, type GpuFilters, type GpuState } from "@/lib/url/gpu-filters";
import { gpuStateLooks } from "./gpu-state";
import classes from "./gpus.module.css";
import { countStates, type DeviceEntry } from "./summary";

export interface StateCountsProps {
  entries: DeviceEntry[];
  /** Held and measured to do nothing; null where nothing is measured. */
  idle?: ReadonlySet<string> | null;
  filters: GpuFilters;
  onFilter: (filters: GpuFilters) => void;
}

export function StateCounts({ entries, idle = null, filters, onFilter }: StateCountsProps) {
  const counts = useMemo(() => countStates(entries), [entries]);
  const choose = (state: GpuState) => {
    const { state: before, ...others } = filters;
    onFilter(before === state ? others : { ...others, state });
  };
  const chooseIdle = () => {
    const { idle: before, ...others } = filters;
    onFilter(before === true ? others : { ...others, idle: true });
  };
  return (
    <div className={classes.states} data-live>
      {GPU_STATES.map((state) => (
        <UnstyledButton
          key={state}
          className={classes.state}
          aria-pressed={filters.state === state}
          onClick={() => choose(state)}
          style={{ ["--state" as string]: `var(--mantine-color-${gpuStateLooks()[state].color}-filled)` }}
        >
          <b className="kw-number">{formatCount(counts[state])}</b>
          <span>{gpuStateLooks()[state].label}</span>
          <small>{gpuStateLooks()[state].meaning}</small>
        </UnstyledButton>
      ))}
      {idle !== null && (
        <UnstyledButton
          className={classes.state}
          aria-pressed={filters.idle === true}
          onClick={() => chooseIdle()}
          style={{ ["--state" as string]: "var(--mantine-color-orange-filled)" }}
        >
          <b className="kw-number">{formatCount(idle.size)}</b>
          <span>{t`Held but idle`}</span>
          <small>{t`no load measured`}</small>
        </UnstyledButton>
      )}
    </div>
  );
}

/** The samples of a node's devices, put together by time. */

export interface UseSample {
  at: string;
  utilization_percent: number | null;
  memory_used_mib: number | null;
  temperature_celsius: number | null;
}

export interface MeasuredDevice {
  memoryMib: number;
  samples: readonly UseSample[];
}

export interface NodeSeries {
  /** Seconds since the epoch, rising. */
  times: number[];
  /** Mean over the devices that report it, in percent; null where none does. */
  busy: (number | null)[];
  /** The used part of all memory of the devices that report it, in percent. */
  memory: (number | null)[];
  /** In degrees Celsius. */
  hottest: (number | null)[];
}

interface Step {
  busy: number[];
  usedMib: number;
  totalMib: number;
  hottest: number | null;
}

export function nodeUse(devices: readonly MeasuredDevice[], stepSeconds: number): NodeSeries {
  const steps = new Map<number, Step>();
  for (const { memoryMib, samples } of devices) {
    for (const sample of samples) {
      const time = Math.floor(Date.parse(sample.at) / 1000 / stepSeconds) * stepSeconds;
      const step = steps.get(time) ?? { busy: [], usedMib: 0, totalMib: 0, hottest: null };
      steps.set(time, step);
      add(step, sample, memoryMib);
    }
  }
  const rows = [...steps].sort(([a], [b]) => a - b);
  return {
    times: rows.map(([time]) => time),
    busy: rows.map(([, { busy }]) => mean(busy)),
    memory: rows.map(([, { usedMib, totalMib }]) => (totalMib === 0 ? null : (100 * usedMib) / totalMib)),
    hottest: rows.map(([, { hottest }]) => hottest),
  };
}

function add(step: Step, sample: UseSample, memoryMib: number) {
  if (sample.utilization_percent !== null) step.busy.push(sample.utilization_percent);
  if (sample.memory_used_mib !== null) {
    step.usedMib += sample.memory_used_mib;
    step.totalMib += memoryMib;
  }
  const temperature = sample.temperature_celsius;
  if (temperature !== null) step.hottest = Math.max(step.hottest ?? temperature, temperature);
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The live totals since this tab was opened: the charts' data. */

import type { LiveData } from "@/api/types";
import { waiting } from "./live-data";

const MIN_STEP_SECONDS = 1;
const MAX_POINTS = 2_400;

const HISTORY_SERIES = ["pending", "admitted", "usedMemoryMib", "usedCoresPercent", "devicesInUse"] as const;
export type HistorySeries = (typeof HISTORY_SERIES)[number];

export class LiveHistory {
  /** Seconds since the epoch, rising. */
  readonly times: number[] = [];
  /** One value for each time; null where the line is broken, because nothing was known then. */
  readonly values: Record<HistorySeries, (number | null)[]> = {
    pending: [],
    admitted: [],
    usedMemoryMib: [],
    usedCoresPercent: [],
    devicesInUse: [],
  };
  /** Goes up with each change, for those who draw it. */
  version = 0;
  private step = MIN_STEP_SECONDS;

  /** Notes the totals at a time of the scheduler's clock; sooner than one step after the last point they replace its values. */
  record(time: string, { totals }: LiveData): void {
    const seconds = Date.parse(time) / 1000;
    if (Number.isNaN(seconds)) return;
    const last = this.times.at(-1);
    const point = {
      pending: waiting(totals),
      admitted: totals.admitted,
      usedMemoryMib: totals.used_memory_mib,
      usedCoresPercent: totals.used_cores_percent,
      devicesInUse: totals.devices_in_use,
    };
    this.version += 1;
    if (last === undefined || seconds >= last + this.step) this.push(seconds, point);
    else if (this.values.pending.at(-1) !== null) this.replaceLast(point);
  }

  breakLine(): void {
    const last = this.times.at(-1);
    if (last === undefined || this.values.pending.at(-1) === null) return;
    this.version += 1;
    this.push(last + this.step / 2, null);
  }

  private replaceLast(point: Record<HistorySeries, number>): void {
    for (const series of HISTORY_SERIES) this.values[series].splice(-1, 1, point[series]);
  }

  private push(seconds: number, point: Record<HistorySeries, number> | null): void {
    if (this.times.length >= MAX_POINTS) this.thin();
    this.times.push(seconds);
    for (const series of HISTORY_SERIES) this.values[series].push(point === null ? null : point[series]);
  }

  /** Keeps every second point, so that a whole day stays on the chart. */
  private thin(): void {
    this.step *= 2;
    const kept = (_: unknown, index: number) => index % 2 === 0;
    this.times.splice(0, Infinity, ...this.times.filter(kept));
    for (const series of HISTORY_SERIES) {
      const values = this.values[series];
      values.splice(0, Infinity, ...values.filter(kept));
    }
  }
}

/** The places of a flow's jobs in its graph: each job stands right of all the jobs that it starts after. */
import type { FlowJob } from "@/api/jobs/job-flows";

export interface Place {
  job: FlowJob;
  /** From the left, counted from 0. */
  layer: number;
  /** In its layer from the top, counted from 0. */
  row: number;
}

/** The name in an item of `after`, which may begin with a condition: `afterany:prepare`. */
export function jobNamed(item: string): string {
  return item.slice(item.lastIndexOf(":") + 1);
}

/** A job comes one layer after the last of its earlier jobs in the flow. Jobs of a cycle, which never start, are last. */
export function placesOf(jobs: readonly FlowJob[]): Place[] {
  const known = new Set(jobs.map(({ name }) => name));
  const layers = new Map<string, number>();
  const after = new Map(jobs.map((job) => [job.name, job.after.map(jobNamed)] as const));
  const before = (name: string) => after.get(name) ?? [];
  let left = [...jobs];
  while (left.length > 0) {
    const ready = left.filter((job) =>
      before(job.name).every((name) => !known.has(name) || layers.has(name)),
    );
    const placed = ready.length > 0 ? ready : left;
    const found = placed.map(({ name }) => {
      const places = before(name).map((each) => layers.get(each) ?? -1);
      return [name, ready.length > 0 ? Math.max(-1, ...places) + 1 : layers.size] as const;
    });
    for (const [name, layer] of found) layers.set(name, layer);
    left = left.filter((job) => !placed.includes(job));
  }
  const filled = new Map<number, number>();
  return jobs.map((job) => {
    const layer = layers.get(job.name) ?? 0;
    const row = filled.get(layer) ?? 0;
    filled.set(layer, row + 1);
    return { job, layer, row };
  });
}

/** The jobs of a flow as boxes from left to right, with a line from each job to the jobs that start after it. */
import { t } from "@lingui/core/macro";
import type { FlowJob, JobFlow } from "@/api/jobs/job-flows";
import { BadgeDot } from "@/components/badge-dot";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { WorkloadLink } from "@/components/object-links";
import { jobNamed, placesOf } from "./flow-layers";
import { jobLook, whyItWaits } from "./flow-words";
import classes from "./flows.module.css";

/** In px. */
const BOX_WIDTH = 200;
const BOX_HEIGHT = 58;
const BETWEEN_LAYERS = 48;
const BETWEEN_ROWS = 14;

const leftOf = (layer: number) => layer * (BOX_WIDTH + BETWEEN_LAYERS);
const topOf = (row: number) => row * (BOX_HEIGHT + BETWEEN_ROWS);

export function FlowGraph({ flow }: { flow: JobFlow }) {
  const places = placesOf(flow.jobs);
  const byName = new Map(places.map((place) => [place.job.name, place]));
  const width = leftOf(Math.max(...places.map(({ layer }) => layer))) + BOX_WIDTH;
  const height = topOf(Math.max(...places.map(({ row }) => row))) + BOX_HEIGHT;
  const lines = places.flatMap((place) =>
    place.job.after.map(jobNamed).flatMap((name) => {
      const before = byName.get(name);
      return before === undefined ? [] : [{ before, place }];
    }),
  );
  return (
    <section className={classes.scroll} aria-label={t`Graph of the jobs`}>
      <div className={classes.graph} style={{ width, height }}>
        <svg width={width} height={height} aria-hidden="true">
          {lines.map(({ before, place }) => (
            <path
              key={`${before.job.name} ${place.job.name}`}
              d={curve(
                leftOf(before.layer) + BOX_WIDTH,
                topOf(before.row) + BOX_HEIGHT / 2,
                leftOf(place.layer),
                topOf(place.row) + BOX_HEIGHT / 2,
              )}
              data-met={place.job.waits_for.map(jobNamed).includes(before.job.name) ? undefined : true}
            />
          ))}
        </svg>
        {places.map(({ job, layer, row }) => (
          <div
            key={`${job.kind} ${job.name}`}
            className={classes.job}
            title={whyItWaits(flow, job) || undefined}
            style={{ left: leftOf(layer), top: topOf(row), width: BOX_WIDTH, height: BOX_HEIGHT }}
          >
            <JobName namespace={flow.namespace} job={job} />
            <BadgeDot {...jobLook(job.phase)} />
          </div>
        ))}
      </div>
    </section>
  );
}

/** The name of a job, which leads to its workload. */
export function JobName({ namespace, job }: { namespace: string; job: FlowJob }) {
  const name = <MiddleEllipsis text={job.name} />;
  if (job.workload === "") return name;
  return (
    <WorkloadLink namespace={namespace} name={job.workload}>
      {name}
    </WorkloadLink>
  );
}

function curve(fromX: number, fromY: number, toX: number, toY: number): string {
  const middle = (fromX + toX) / 2;
  return `M${fromX} ${fromY}C${middle} ${fromY} ${middle} ${toY} ${toX} ${toY}`;
}

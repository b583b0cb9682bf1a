/** From created to finished: when each step was reached and how long it took. */
import { t } from "@lingui/core/macro";
import { Text } from "@mantine/core";
import type { Workload } from "@/api/types";
import { useNow } from "@/lib/clock";
import { formatAge, formatDuration, formatTimestamp, secondsBetween } from "@/lib/time";
import classes from "../workloads.module.css";

interface Step {
  name: string;
  at: string | null;
}

/** The steps in order; one that was lost by an eviction is not reached. */
function lifecycleSteps(workload: Workload): Step[] {
  return [
    { name: t`Created`, at: workload.created_at },
    { name: t`Queued`, at: workload.queued_at },
    { name: t`Quota reserved`, at: workload.quota_reserved_at },
    { name: t`Admitted`, at: workload.admitted_at },
    { name: t`Finished`, at: workload.finished_at },
  ];
}

export function Lifecycle({ workload }: { workload: Workload }) {
  const now = useNow();
  const steps = lifecycleSteps(workload);
  const latest = steps.findLastIndex((step) => step.at !== null);
  return (
    <ol className={classes.steps}>
      {steps.map((step, place) => {
        const next = steps.slice(place + 1).find((later) => later.at !== null);
        const lasts = place <= latest ? secondsBetween(step.at, next?.at ?? null, now) : null;
        const over = place === latest && workload.finished_at !== null;
        return (
          <li
            key={step.name}
            className={classes.step}
            data-reached={step.at !== null || undefined}
            data-now={(place === latest && !over) || undefined}
          >
            <Text fz="sm" fw={600} c={step.at === null ? "var(--kw-muted)" : "var(--mantine-color-text)"}>
              {step.name}
            </Text>
            <Text fz="xs" c="var(--kw-muted)" className="kw-number">
              {step.at === null ? t`not yet` : formatTimestamp(step.at)}
            </Text>
            {lasts !== null && !over && (
              <Text fz="xs" c="var(--kw-muted)" className="kw-number">
                {place === latest ? t`for ${formatAge(lasts)} so far` : t`took ${formatDuration(lasts)}`}
              </Text>
            )}
          </li>
        );
      })}
    </ol>
  );
}

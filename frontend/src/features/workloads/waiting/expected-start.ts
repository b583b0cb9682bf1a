/** When a waiting workload may start: an estimate, and said to be one. */
import { plural, t } from "@lingui/core/macro";
import type { ExplainedWorkload } from "@/api/types";

const HOUR = 3600;
const MANY_HOURS = 48;

/** Roughly: nobody can know it to the second. */
function roughly(seconds: number): string {
  const minutes = Math.max(1, Math.round(seconds / 60));
  if (minutes < 100) return t`about ${minutes} min`;
  const hours = Math.round(seconds / HOUR);
  if (hours <= MANY_HOURS) return t`about ${hours} h`;
  return t`about ${Math.round(hours / 24)} days`;
}

function window(seconds: number): string {
  if (seconds >= HOUR) return t`at the rate of the last hour`;
  const minutes = Math.max(1, Math.round(seconds / 60));
  return plural(minutes, {
    one: "at the rate of the last minute",
    other: "at the rate of the last # minutes",
  });
}

/** How many that were queued later its ClusterQueue admitted meanwhile; empty where none was, or none was counted. */
export function overtakenWords({
  expected_start: { overtaken_by: others, window_seconds: over },
}: Pick<ExplainedWorkload, "expected_start">): string {
  if (others === null || others === 0) return "";
  if (over >= HOUR) {
    return plural(others, {
      one: "# workload that was queued later overtook it in the last hour",
      other: "# workloads that were queued later overtook it in the last hour",
    });
  }
  return plural(others, {
    one: "# workload that was queued later has overtaken it",
    other: "# workloads that were queued later have overtaken it",
  });
}

/** A sentence; empty where the page says the same already. */
export function expectedWords({
  expected_start: expected,
}: Pick<ExplainedWorkload, "expected_start">): string {
  const { seconds, reason, admitted, ahead, window_seconds: over } = expected;
  if (seconds !== null) {
    if (admitted === null) return t`It is expected to start in one of the next cycles.`;
    const position = ahead + 1;
    return t`Estimated start: ${roughly(seconds)}, ${window(over)} (${admitted} workloads admitted from its ClusterQueue, where it is number ${position}).`;
  }
  switch (reason) {
    case "NothingAdmitted":
      return t`No start can be estimated: its ClusterQueue admitted no workload lately.`;
    case "DecidedElsewhere":
      return t`No start can be estimated: another scheduler decides in this cluster.`;
    case "NoPlace":
      return t`No start can be estimated: it waits for room on nodes.`;
    case "Overtaken":
      return t`No start can be estimated: workloads that were queued later overtake it.`;
    case "NotQueued":
      return t`No start can be estimated: its queue does not admit workloads.`;
    default:
      return "";
  }
}

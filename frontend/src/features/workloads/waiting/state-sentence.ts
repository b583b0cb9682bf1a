/** The state of a workload in one sentence. */
import { plural, t } from "@lingui/core/macro";
import type { Explanation, FlavorVerdict, WorkloadDetail } from "@/api/types";
import { formatAmountShort } from "@/lib/quantity";
import { formatDuration, secondsBetween } from "@/lib/time";
import { explainPendingReason } from "@/lib/words/pending-reason";

/** "2 cpu", "62 % of nvidia.com/gpucores" */
function amountOf(resource: string, amount: number): string {
  const text = formatAmountShort(resource, amount);
  return /[^\d.,]/.test(text) ? t`${text} of ${resource}` : `${text} ${resource}`;
}

/** What a flavor lacks, in a list. */
function lackingOf({ resources }: FlavorVerdict): string {
  const parts = resources
    .filter(({ lacking }) => lacking > 0)
    .map(({ resource, lacking }) => amountOf(resource, lacking));
  const last = parts.at(-1) ?? "";
  return parts.length < 2 ? last : t`${parts.slice(0, -1).join(", ")} and ${last}`;
}

/** The flavor with quota that comes nearest: the one whose worst resource lacks the smallest part of what is asked. */
export function nearestFlavor(flavors: FlavorVerdict[]): FlavorVerdict | undefined {
  const gap = ({ resources }: FlavorVerdict) =>
    Math.max(...resources.map(({ asked, lacking }) => (asked === 0 ? 0 : lacking / asked)));
  return flavors.filter(({ rule }) => rule === "Quota").toSorted((a, b) => gap(a) - gap(b))[0];
}

function cannotStart({ flavors, message }: Explanation): string {
  const beyond = flavors
    .flatMap(({ flavor, resources }) => resources.map((need) => ({ flavor, ...need })))
    .find(({ asked, maximum }) => asked > maximum);
  if (beyond === undefined) return t`It cannot start. ${message}`;
  const { resource, asked, maximum, flavor } = beyond;
  return t`It cannot start: it asks for ${amountOf(resource, asked)}, and its queue can have at most ${formatAmountShort(resource, maximum)} in flavor ${flavor}.`;
}

function waits(explanation: Explanation): string {
  const { rule, flavors, message } = explanation;
  if (rule === "Quota") {
    const nearest = nearestFlavor(flavors);
    if (nearest !== undefined)
      return t`It waits for quota: flavor ${nearest.flavor} lacks ${lackingOf(nearest)}.`;
  }
  if (rule === "Devices") {
    const nodes = flavors.find((verdict) => verdict.nodes !== null)?.nodes;
    if (nodes)
      return plural(nodes.nodes, {
        one: "Quota is free, but the only node has not the devices that it asks for.",
        other: "Quota is free, but none of # nodes has the devices that it asks for.",
      });
  }
  return message;
}

export function waitingSentence(explanation: Explanation): string {
  switch (explanation.state) {
    case "FitsNow":
      return t`Quota and devices are free for it: it starts when its turn comes.`;
    case "Preempts":
      return plural(explanation.victims.length, {
        one: "It starts once # workload that it preempts has stopped.",
        other: "It starts once # workloads that it preempts have stopped.",
      });
    case "CannotStart":
      return cannotStart(explanation);
    case "Waits":
      return waits(explanation);
    default:
      return explanation.message;
  }
}

/** `explanation` is undefined while it is read, or where there is none. */
export function stateSentence(
  workload: WorkloadDetail,
  explanation: Explanation | undefined,
  now: number,
): string {
  const { status, devices } = workload;
  if (status === "Admitted") {
    const held = new Set(devices.map(({ uuid }) => uuid)).size;
    const nodes = new Set(devices.map(({ node }) => node)).size;
    return held === 0
      ? t`It is admitted and holds its quota.`
      : t`It is admitted and holds ${plural(held, { one: "# device", other: "# devices" })} on ${plural(nodes, { one: "# node", other: "# nodes" })}.`;
  }
  if (status === "Finished") {
    const ran = secondsBetween(workload.admitted_at, workload.finished_at, now);
    return ran === null ? t`It finished.` : t`It finished after running for ${formatDuration(ran)}.`;
  }
  if (status === "QuotaReserved") return t`It holds quota and waits for its admission checks.`;
  if (status === "Evicted") return workload.message || t`It was evicted; its pods are stopping.`;
  if (explanation !== undefined && explanation.state !== "HoldsQuota") return waitingSentence(explanation);
  return (
    workload.message || explainPendingReason(workload.reason) || t`The scheduler has not evaluated it yet.`
  );
}

/** The state of a workload in one sentence. */
import type { Explanation, FlavorVerdict, WorkloadDetail } from "@/api/types";
import { formatAmountShort, formatCount } from "@/lib/quantity";
import { formatDuration, secondsBetween } from "@/lib/time";
import { explainPendingReason } from "@/lib/words/pending-reason";

/** "2 cpu", "62 % of nvidia.com/gpucores" */
function amountOf(resource: string, amount: number): string {
  const text = formatAmountShort(resource, amount);
  return /[^\d.,]/.test(text) ? `${text} of ${resource}` : `${text} ${resource}`;
}

/** What a flavor lacks, in a list. */
function lackingOf({ resources }: FlavorVerdict): string {
  const parts = resources
    .filter(({ lacking }) => lacking > 0)
    .map(({ resource, lacking }) => amountOf(resource, lacking));
  return [parts.slice(0, -1).join(", "), parts.at(-1)].filter(Boolean).join(" and ");
}

/** The flavor with quota that comes nearest: the one whose worst resource lacks the smallest part of what is asked. */
export function nearestFlavor(flavors: FlavorVerdict[]): FlavorVerdict | undefined {
  const gap = ({ resources }: FlavorVerdict) =>
    Math.max(...resources.map(({ asked, lacking }) => (asked === 0 ? 0 : lacking / asked)));
  return flavors.filter(({ rule }) => rule === "Quota").toSorted((a, b) => gap(a) - gap(b))[0];
}

function count(number: number, noun: string): string {
  return `${formatCount(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function cannotStart({ flavors, message }: Explanation): string {
  const beyond = flavors
    .flatMap(({ flavor, resources }) => resources.map((need) => ({ flavor, ...need })))
    .find(({ asked, maximum }) => asked > maximum);
  if (beyond === undefined) return `It cannot start. ${message}`;
  const { resource, asked, maximum, flavor } = beyond;
  return `It cannot start: it asks for ${amountOf(resource, asked)}, and its queue can have at most ${formatAmountShort(resource, maximum)} in flavor ${flavor}.`;
}

function waits(explanation: Explanation): string {
  const { rule, flavors, message } = explanation;
  if (rule === "Quota") {
    const nearest = nearestFlavor(flavors);
    if (nearest !== undefined)
      return `It waits for quota: flavor ${nearest.flavor} lacks ${lackingOf(nearest)}.`;
  }
  if (rule === "Devices") {
    const nodes = flavors.find((verdict) => verdict.nodes !== null)?.nodes;
    if (nodes)
      return `Quota is free, but none of ${count(nodes.nodes, "node")} has the devices that it asks for.`;
  }
  return message;
}

export function waitingSentence(explanation: Explanation): string {
  switch (explanation.state) {
    case "FitsNow":
      return "Quota and devices are free for it: it starts when its turn comes.";
    case "Preempts":
      return `It starts once ${count(explanation.victims.length, "workload")} that it preempts ${explanation.victims.length === 1 ? "has" : "have"} stopped.`;
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
      ? "It is admitted and holds its quota."
      : `It is admitted and holds ${count(held, "device")} on ${count(nodes, "node")}.`;
  }
  if (status === "Finished") {
    const ran = secondsBetween(workload.admitted_at, workload.finished_at, now);
    return `It finished${ran === null ? "" : ` after running for ${formatDuration(ran)}`}.`;
  }
  if (status === "QuotaReserved") return "It holds quota and waits for its admission checks.";
  if (status === "Evicted") return workload.message || "It was evicted; its pods are stopping.";
  if (explanation !== undefined && explanation.state !== "HoldsQuota") return waitingSentence(explanation);
  return (
    workload.message || explainPendingReason(workload.reason) || "The scheduler has not evaluated it yet."
  );
}

/** The state of a workload in one sentence. */
import { plural, t } from "@lingui/core/macro";
import type { Explanation, FlavorVerdict, PodSet, WorkloadDetail } from "@/api/types";
import { formatAmountShort } from "@/lib/quantity";
import { formatDuration, formatTimestamp, secondsBetween } from "@/lib/time";
import { explainPendingReason, startsAfterGates } from "@/lib/words/pending-reason";
import { summarizeRequests } from "@/lib/words/requests";

type AskingPodSet = Pick<PodSet, "name" | "count" | "requests">;

/** "2 cpu", "62 % of nvidia.com/gpucores" */
function amountOf(resource: string, amount: number): string {
  const text = formatAmountShort(resource, amount);
  return /[^\d.,]/.test(text) ? t`${text} of ${resource}` : `${text} ${resource}`;
}

/** The resources that a flavor lacks, in a list. */
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

/** "4 GPU", of one pod of a pod set. */
function askedByOnePod(podSet: AskingPodSet | undefined): string {
  const [asked = t`the devices of one pod`] =
    podSet === undefined ? [] : summarizeRequests([{ count: 1, requests: podSet.requests }]);
  return asked;
}

/** Its nodes would not take it even if they were empty. */
function exceedsNodes(flavors: FlavorVerdict[], podSets: readonly AskingPodSet[]): string {
  const place = nearestPlace(flavors);
  const podSet = podSets.find(({ name }) => name === place?.nodes.pod_set);
  const asked = askedByOnePod(podSet);
  const names = [...new Set(flavors.filter(({ rule }) => isOfNodes(rule)).map(({ flavor }) => flavor))].join(
    ", ",
  );
  const count = podSet?.count ?? 1;
  if (count === 1)
    return t`It can never start: it requests ${asked} on one node, and no node of ${names} has that much, even when empty.`;
  return t`It can never start: it requests ${asked} on one node for each of its ${count} pods, and the nodes of ${names} do not have that much, even when empty.`;
}

function cannotStart({ rule, flavors, message }: Explanation, podSets: readonly AskingPodSet[]): string {
  if (isOfNodes(rule)) return exceedsNodes(flavors, podSets);
  const beyond = flavors
    .flatMap(({ flavor, resources }) => resources.map((need) => ({ flavor, ...need })))
    .find(({ asked, maximum }) => asked > maximum);
  if (beyond === undefined) return t`It cannot start. ${message}`;
  const { resource, asked, maximum, flavor } = beyond;
  return t`It cannot start: it requests ${amountOf(resource, asked)}, and its queue can have at most ${formatAmountShort(resource, maximum)} in flavor ${flavor}.`;
}

/** Whether nodes or their devices refuse it, and not its quota. */
export function isOfNodes(rule: Explanation["rule"]): boolean {
  return rule === "Devices" || rule === "Nodes";
}

type Nodes = NonNullable<FlavorVerdict["nodes"]>;

/** The nodes that a flavor's pods may run on at all: the others are not selected by labels, selector or affinity. */
function candidates({ nodes, refused }: Nodes): number {
  return nodes - (refused.find(({ reason }) => reason === "NodeNotSelected")?.nodes ?? 0);
}

/** The flavor with free quota on whose nodes the most pods have a place. */
function nearestPlace(flavors: FlavorVerdict[]): (FlavorVerdict & { nodes: Nodes }) | undefined {
  return flavors
    .flatMap((verdict) =>
      verdict.nodes === null || !isOfNodes(verdict.rule) ? [] : [{ ...verdict, nodes: verdict.nodes }],
    )
    .toSorted((a, b) => b.nodes.replica - a.nodes.replica || candidates(b.nodes) - candidates(a.nodes))[0];
}

/** "It waits for 8 GPU on one node: none of the 4 nodes of flavor v100 has room.", for several pods with the number of pods that have a place. */
function waitsForPlace(verdict: FlavorVerdict & { nodes: Nodes }, podSets: readonly AskingPodSet[]): string {
  const { flavor, nodes } = verdict;
  const podSet = podSets.find(({ name }) => name === nodes.pod_set);
  const asked = askedByOnePod(podSet);
  const none = plural(candidates(nodes), {
    0: `no node belongs to flavor ${flavor}`,
    one: `the only node of flavor ${flavor} has no room`,
    other: `none of the # nodes of flavor ${flavor} has room`,
  });
  const count = podSet?.count ?? 1;
  if (count === 1) return t`It waits for ${asked} on one node: ${none}.`;
  if (nodes.replica === 0)
    return t`It waits for ${asked} on one node for each of its ${count} pods: ${none}.`;
  const placed = plural(nodes.replica, { one: "# has a place", other: "# have a place" });
  return t`It waits for ${asked} on one node for each of its ${count} pods: ${placed}; for the next one ${none}.`;
}

function waits(explanation: Explanation, podSets: readonly AskingPodSet[]): string {
  const { rule, flavors, message, would_delay: plan } = explanation;
  if (rule === "PlannedStart" && plan !== null)
    return t`It would fit, but it would delay a start that is planned at ${formatTimestamp(plan.starts_at)}.`;
  if (rule === "Quota") {
    const nearest = nearestFlavor(flavors);
    if (nearest !== undefined)
      return t`It waits for quota: flavor ${nearest.flavor} lacks ${lackingOf(nearest)}.`;
  }
  if (isOfNodes(rule)) {
    const nearest = nearestPlace(flavors);
    if (nearest !== undefined) return waitsForPlace(nearest, podSets);
  }
  return message;
}

export function waitingSentence(explanation: Explanation, podSets: readonly AskingPodSet[] = []): string {
  switch (explanation.state) {
    case "FitsNow":
      return t`Quota and devices are free for it: it starts when its turn comes.`;
    case "Preempts":
      return plural(explanation.victims.length, {
        one: "It starts once # workload that it preempts has stopped.",
        other: "It starts once # workloads that it preempts have stopped.",
      });
    case "CannotStart":
      return cannotStart(explanation, podSets);
    case "Waits":
      return waits(explanation, podSets);
    default:
      return startsAfterGates(explanation.message) ?? explanation.message;
  }
}

function heldWords(devices: WorkloadDetail["devices"]): string {
  const held = new Set(devices.map(({ uuid }) => uuid)).size;
  const nodes = new Set(devices.map(({ node }) => node)).size;
  if (held === 0) return t`its quota`;
  return t`${plural(held, { one: "# device", other: "# devices" })} on ${plural(nodes, { one: "# node", other: "# nodes" })}`;
}

/** `explanation` is undefined while it is read, or where there is none. */
export function stateSentence(
  workload: WorkloadDetail,
  explanation: Explanation | undefined,
  now: number,
): string {
  const { status, state, devices } = workload;
  if (status === "Admitted") {
    const held = heldWords(devices);
    return state === "Running"
      ? t`It is running and holds ${held}.`
      : t`It is starting: it holds ${held}, and some of its pods are not ready.`;
  }
  if (state === "OnHold") return t`It is on hold: it is not scheduled until it is released.`;
  if (state === "Failed") return workload.message || t`It failed.`;
  if (status === "Finished") {
    const ran = secondsBetween(workload.admitted_at, workload.finished_at, now);
    return ran === null ? t`It finished.` : t`It finished after running for ${formatDuration(ran)}.`;
  }
  if (status === "QuotaReserved") return t`It holds quota and waits for its admission checks.`;
  if (status === "Evicted") return workload.message || t`It was evicted; its pods are stopping.`;
  if (explanation !== undefined && explanation.state !== "HoldsQuota")
    return waitingSentence(explanation, workload.pod_sets);
  return (
    explainPendingReason(workload.reason) || workload.message || t`The scheduler has not evaluated it yet.`
  );
}

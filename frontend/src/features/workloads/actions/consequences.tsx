/** The consequences of an action for workloads as they are now: which of them stop, and the resources that it frees. */
import { plural, t } from "@lingui/core/macro";
import { Alert, List } from "@mantine/core";
import { useCluster } from "@/api/cluster";
import { type TriedPlan, useTrial } from "@/api/studio/questions";
import type { Workload } from "@/api/types";
import { TriedEffects } from "@/components/manifest/tried-effects";
import { WorkloadNames } from "@/components/object-links";
import { summarizeRequests } from "@/lib/words/requests";
import type { ActionKind } from "./action-words";

export type Affected = Pick<Workload, "namespace" | "name" | "status" | "pod_sets">;

/** The workloads that hold quota, and so have pods that run or are about to. */
function holdsQuota({ status }: Pick<Workload, "status">): boolean {
  return status === "Admitted" || status === "QuotaReserved";
}

const STOPPING: readonly ActionKind[] = ["hold", "requeue", "cancel"];

interface ConsequencesProps {
  kind: ActionKind;
  workloads: readonly Affected[];
  /** The chosen class, for another priority. */
  priorityClass?: string;
}

/** The action as a plan of the studio; null where it has no effect that can be tried. */
export function planOf(
  kind: ActionKind,
  workloads: readonly Affected[],
  priorityClass: string | undefined,
): TriedPlan | null {
  const unfinished = workloads.filter(({ status }) => status !== "Finished");
  const holding = unfinished.filter(holdsQuota).map(keyOf);
  const all = unfinished.map(keyOf);
  // A workload on hold has, for all others, ended.
  if ((kind === "cancel" || kind === "hold") && all.length > 0) return { end: all };
  if (kind === "requeue" && holding.length > 0) return { requeue: holding };
  if (kind === "priority" && priorityClass && all.length > 0)
    return { priorities: all.map((workload) => ({ workload, class: priorityClass })) };
  return null;
}

export function Consequences({ kind, workloads, priorityClass }: ConsequencesProps) {
  const plan = planOf(kind, workloads, priorityClass);
  const trial = useTrial(useCluster(), plan);
  const ended = workloads.filter(({ status }) => status === "Finished");
  const holding = workloads.filter(holdsQuota);
  const waiting = workloads.filter((each) => !holdsQuota(each) && each.status !== "Finished");
  const stops = STOPPING.includes(kind) ? holding : [];
  const freed = summarizeRequests(stops.flatMap((each) => each.pod_sets)).join(", ");
  return (
    <Alert
      variant="light"
      color={stops.length > 0 ? "yellow" : "teal"}
      title={t`Effects now`}
      role="status"
      aria-live="off"
    >
      <List size="sm" spacing={2}>
        {STOPPING.includes(kind) && stops.length === 0 && (
          <List.Item>{t`No running workload stops.`}</List.Item>
        )}
        {stops.length > 0 && (
          <List.Item>
            <WorkloadNames
              text={plural(stops.length, { one: "# workload stops", other: "# workloads stop" })}
              count={stops.length}
              workloads={stops.map(keyOf)}
            />
          </List.Item>
        )}
        {freed !== "" && <List.Item>{t`Released for others: ${freed}`}</List.Item>}
        {waiting.length > 0 && kind !== "release" && (
          <List.Item>
            <WorkloadNames
              text={waitingWords(kind, waiting.length)}
              count={waiting.length}
              workloads={waiting.map(keyOf)}
            />
          </List.Item>
        )}
        {kind === "release" && waiting.length > 0 && (
          <List.Item>
            {plural(waiting.length, { one: "# workload queues again", other: "# workloads queue again" })}
          </List.Item>
        )}
        {kind === "priority" && holding.length > 0 && (
          <List.Item>
            {plural(holding.length, {
              one: "# running workload continues; the new priority decides which workloads may preempt it",
              other:
                "# running workloads continue; the new priority decides which workloads may preempt them",
            })}
          </List.Item>
        )}
        {ended.length > 0 && (
          <List.Item>
            {plural(ended.length, {
              one: "# workload has ended and is left as it is",
              other: "# workloads have ended and are left as they are",
            })}
          </List.Item>
        )}
      </List>
      {plan !== null && <TriedEffects {...trial} />}
    </Alert>
  );
}

const keyOf = ({ namespace, name }: Affected) => `${namespace}/${name}`;

function waitingWords(kind: ActionKind, count: number): string {
  if (kind === "cancel")
    return plural(count, { one: "# waiting workload ends", other: "# waiting workloads end" });
  if (kind === "hold")
    return plural(count, {
      one: "# waiting workload leaves its place in the queue",
      other: "# waiting workloads leave their places in the queue",
    });
  if (kind === "priority")
    return plural(count, {
      one: "# waiting workload moves to another place in its queue",
      other: "# waiting workloads move to other places in their queues",
    });
  return plural(count, {
    one: "# waiting workload stays as it is",
    other: "# waiting workloads stay as they are",
  });
}

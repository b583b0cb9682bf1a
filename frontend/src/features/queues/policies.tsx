/** How a ClusterQueue orders, preempts and chooses flavors, as sentences. */
import { plural, t } from "@lingui/core/macro";
import { Text } from "@mantine/core";
import type { ClusterQueue } from "@/api/types";
import { Panel } from "@/components/panel";
import { formatDuration } from "@/lib/time";

export interface Rule {
  /** The field and its value, as the manifest has them. */
  field: string;
  text: string;
}

export function Policies({ queue }: { queue: ClusterQueue }) {
  return (
    <Panel title={t`Rules`}>
      <Text fz="sm" component="p" m={0}>
        {rules(queue).map(({ field, text }) => (
          <span key={field} title={field}>
            {text}{" "}
          </span>
        ))}
      </Text>
    </Panel>
  );
}

/** The policies that explain a queue's decisions; policies that cannot apply to it are left out. */
export function rules(queue: ClusterQueue): Rule[] {
  const flavors = new Set(queue.resource_groups.flatMap((group) => group.flavors.map(({ name }) => name)));
  return [
    orderRule(queue),
    withinRule(queue),
    ...(queue.cohort === "" ? [] : [reclaimRule(queue), borrowRule(queue)]),
    ...(flavors.size > 1 ? flavorRules(queue) : []),
    ...protectionRules(queue),
  ];
}

function orderRule(queue: ClusterQueue): Rule {
  const { queueing_strategy: strategy, admission_mode: mode } = queue;
  const fair = mode === "UsageBasedAdmissionFairSharing";
  const ranked = Object.keys(queue.priority_weights ?? {}).length > 0;
  const order = fair
    ? t`The LocalQueue with the least usage is served first, then higher priorities, then older workloads`
    : ranked
      ? t`Higher multifactor priorities are served first (kueueweb.io/priority-weights)`
      : t`Higher priorities are served first, then older workloads`;
  const passing =
    strategy === "StrictFIFO"
      ? t`no workload overtakes one that does not fit.`
      : t`a workload that fits may overtake one that does not.`;
  return { field: `queueingStrategy: ${strategy}`, text: t`${order}; ${passing}` };
}

function withinRule({ preemption }: ClusterQueue): Rule {
  const policy = preemption.within_cluster_queue;
  const texts = {
    Never: t`Workloads of this queue do not preempt each other.`,
    LowerPriority: t`Workloads of lower priority are preempted in this queue.`,
    LowerOrNewerEqualPriority: t`Workloads of lower priority, and newer ones of equal priority, are preempted in this queue.`,
  };
  return { field: `preemption.withinClusterQueue: ${policy}`, text: texts[policy] };
}

function reclaimRule({ preemption }: ClusterQueue): Rule {
  const policy = preemption.reclaim_within_cohort;
  const texts = {
    Never: t`Lent quota returns only when the borrowing workloads end.`,
    LowerPriority: t`Lent quota is reclaimed from workloads of lower priority.`,
    Any: t`Lent quota is reclaimed from workloads of any priority.`,
  };
  return { field: `preemption.reclaimWithinCohort: ${policy}`, text: texts[policy] };
}

function borrowRule({ preemption }: ClusterQueue): Rule {
  const { policy, max_priority_threshold: threshold } = preemption.borrow_within_cohort;
  const field = `preemption.borrowWithinCohort.policy: ${policy}`;
  if (policy === "Never") return { field, text: t`It does not preempt in order to borrow.` };
  return {
    field,
    text:
      threshold === null
        ? t`It preempts workloads of lower priority in order to borrow.`
        : t`It preempts workloads up to priority ${threshold} in order to borrow.`,
  };
}

function flavorRules({ flavor_fungibility: flavor }: ClusterQueue): Rule[] {
  const borrow = flavor.when_can_borrow;
  const preempt = flavor.when_can_preempt;
  const preferences: Record<string, string> = {
    BorrowingOverPreemption: t`It prefers a flavor that needs borrowing to one that needs preemption.`,
    PreemptionOverBorrowing: t`It prefers a flavor that needs preemption to one that needs borrowing.`,
  };
  const preferred = preferences[flavor.preference];
  return [
    {
      field: `flavorFungibility.whenCanBorrow: ${borrow}`,
      text:
        borrow === "TryNextFlavor"
          ? t`It tries the next flavor before it borrows.`
          : t`It borrows before it tries the next flavor.`,
    },
    {
      field: `flavorFungibility.whenCanPreempt: ${preempt}`,
      text:
        preempt === "TryNextFlavor"
          ? t`It tries the next flavor before it preempts.`
          : t`It preempts before it tries the next flavor.`,
    },
    ...(preferred === undefined
      ? []
      : [{ field: `flavorFungibility.preference: ${flavor.preference}`, text: preferred }]),
  ];
}

function protectionRules(queue: ClusterQueue): Rule[] {
  const { minimum_run_seconds: run, cool_down_seconds: coolDown } = queue.preemption_protection;
  const checks = queue.admission_checks.length;
  return [
    ...(queue.preempt_for_devices
      ? [
          {
            field: "kueueweb.io/preempt-for-devices: true",
            text: t`It also preempts when quota is free but no device is.`,
          },
        ]
      : []),
    ...(queue.backfill === "easy"
      ? [
          {
            field: "kueueweb.io/backfill: easy",
            text: t`The first workload that must wait gets a planned start, which later workloads may not delay.`,
          },
        ]
      : []),
    ...(queue.never_reclaimed
      ? [
          {
            field: "kueueweb.io/never-reclaim: true",
            text: t`Other queues do not preempt its workloads.`,
          },
        ]
      : []),
    ...(run
      ? [
          {
            field: `kueueweb.io/minimum-run-seconds: ${run}`,
            text: t`A workload is protected from preemption for its first ${formatDuration(run)}.`,
          },
        ]
      : []),
    ...(coolDown
      ? [
          {
            field: `kueueweb.io/preemption-cool-down-seconds: ${coolDown}`,
            text: t`A preempted workload is protected from another preemption for ${formatDuration(coolDown)}.`,
          },
        ]
      : []),
    ...(checks > 0
      ? [
          {
            field: "admissionChecks",
            text: plural(checks, {
              one: "# admission check must pass before a workload starts.",
              other: "# admission checks must pass before a workload starts.",
            }),
          },
        ]
      : []),
  ];
}

/** The immediate effects of a change: the workloads that start, wait or stop, and the quotas that are exceeded. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, List, Text } from "@mantine/core";
import { ClusterQueueLink, CohortLink, WorkloadNames } from "@/components/object-links";
import { formatAmountShort } from "@/lib/quantity";

interface Affected {
  count: number;
  workloads: readonly { workload: string }[];
}

export interface ShownEffects {
  complete: boolean;
  starts: Affected;
  waits: Affected;
  preempted: Affected;
  stopped: Affected;
  quotas: readonly {
    kind: "Cohort" | "ClusterQueue";
    name: string;
    flavor: string;
    resource: string;
    used: number;
    over: number;
  }[];
  inactive: readonly { name: string; message: string }[];
}

interface Previewed {
  effects: ShownEffects | null;
  effects_pending: boolean;
  effects_problem: string;
}

/** The effects that a form previews, or why there are none. */
export function PreviewedEffects({ preview, warnings }: { preview: Previewed; warnings: readonly string[] }) {
  const { effects, effects_pending, effects_problem } = preview;
  if (effects !== null) {
    const why =
      effects_problem ||
      (effects_pending ? t`The studio is still trying this change: more effects may follow.` : "");
    return <EffectsView effects={effects} warnings={warnings} unfinished={why} />;
  }
  if (effects_problem === "" && !effects_pending && warnings.length === 0) return null;
  return (
    <Alert color="yellow" variant="light" title={t`Effects not known`} role="status">
      {effects_pending && <Text size="sm">{t`The studio tries the change.`}</Text>}
      {effects_problem !== "" && <Text size="sm">{effects_problem}</Text>}
      {warnings.map((warning) => (
        <Text size="sm" key={warning}>
          {warning}
        </Text>
      ))}
    </Alert>
  );
}

interface EffectsViewProps {
  effects: ShownEffects;
  warnings?: readonly string[];
  title?: string;
  /** Why there may be more effects; empty: a plain sentence where they are not complete. */
  unfinished?: string;
  /** Workloads that are evicted or ended, and neither preempted nor stopped with their queue. */
  evicted?: number;
}

export function EffectsView({
  effects,
  warnings = [],
  title,
  unfinished = "",
  evicted = 0,
}: EffectsViewProps) {
  const { starts, waits, preempted, stopped, quotas, inactive, complete } = effects;
  const over = quotas.filter((quota) => quota.over > 0);
  const losing = waits.count + preempted.count + stopped.count + evicted + over.length + inactive.length;
  const isQuiet = losing + starts.count + warnings.length === 0;
  return (
    <Alert
      color={losing + warnings.length > 0 ? "yellow" : "teal"}
      variant="light"
      title={title ?? t`Effects now`}
      role="status"
    >
      {isQuiet && (
        <Text size="sm">
          <Trans>No workload is affected immediately.</Trans>
        </Text>
      )}
      <List size="sm" spacing={2}>
        {evicted > 0 && (
          <List.Item>
            {plural(evicted, {
              one: "# workload would be evicted or ended by the plan",
              other: "# workloads would be evicted or ended by the plan",
            })}
          </List.Item>
        )}
        <Line
          affected={starts}
          text={plural(starts.count, { one: "# workload would start", other: "# workloads would start" })}
        />
        <Line
          affected={waits}
          text={plural(waits.count, {
            one: "# workload that would start now would wait",
            other: "# workloads that would start now would wait",
          })}
        />
        <Line
          affected={preempted}
          text={plural(preempted.count, {
            one: "# workload would be preempted",
            other: "# workloads would be preempted",
          })}
        />
        <Line
          affected={stopped}
          text={plural(stopped.count, {
            one: "# running workload would be evicted: its queue is drained",
            other: "# running workloads would be evicted: their queue is drained",
          })}
        />
        {over.map(({ kind, name, flavor, resource, used, over: beyond }) => (
          <List.Item key={`${kind} ${name} ${flavor} ${resource}`}>
            {kind === "Cohort" ? <CohortLink name={name} inText /> : <ClusterQueueLink name={name} inText />}
            {": "}
            {t`over quota: ${formatAmountShort(resource, used)} of ${resource} in ${flavor} is used, the limit is ${formatAmountShort(resource, used - beyond)}. The excess is released as workloads end; until then no workload starts there.`}
          </List.Item>
        ))}
        {inactive.map(({ name, message }) => (
          <List.Item key={name}>
            <ClusterQueueLink name={name} inText /> {t`would admit no workloads: ${message}`}
          </List.Item>
        ))}
        {warnings.map((warning) => (
          <List.Item key={warning}>{warning}</List.Item>
        ))}
      </List>
      {!complete && (
        <Text size="xs" mt={4} c="var(--kw-muted)">
          {unfinished || <Trans>Time ran out before everything was tried: there may be more effects.</Trans>}
        </Text>
      )}
    </Alert>
  );
}

function Line({ affected, text }: { affected: Affected; text: string }) {
  if (affected.count === 0) return null;
  return (
    <List.Item>
      <WorkloadNames
        text={text}
        count={affected.count}
        workloads={affected.workloads.map(({ workload }) => workload)}
      />
    </List.Item>
  );
}

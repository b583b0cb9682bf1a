/** What a change would do at once: who gains, who loses, and which quota would be overdrawn. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, List, Text } from "@mantine/core";
import type { Effects } from "@/api/types";
import { ClusterQueueLink, CohortLink, WorkloadNames } from "@/components/object-links";
import { formatAmountShort } from "@/lib/quantity";

type Affected = Effects["starts"];

export function EffectsView({ effects, warnings }: { effects: Effects; warnings: readonly string[] }) {
  const { starts, waits, preempted, stopped, quotas, inactive, complete } = effects;
  const over = quotas.filter((quota) => quota.over > 0);
  const losing = waits.count + preempted.count + stopped.count + over.length + inactive.length;
  const isQuiet = losing + starts.count + warnings.length === 0;
  return (
    <Alert
      color={losing + warnings.length > 0 ? "yellow" : "teal"}
      variant="light"
      title={t`Effects now`}
      role="status"
    >
      {isQuiet && (
        <Text size="sm">
          <Trans>No workload is affected immediately.</Trans>
        </Text>
      )}
      <List size="sm" spacing={2}>
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
          <Trans>The preview was cut short: there may be more effects.</Trans>
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

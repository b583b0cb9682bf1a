/** What the submission would come to: whether it starts now, why not, and what an hour costs. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, List, Text } from "@mantine/core";
import type { Preview, PreviewedWorkload } from "@/api/types";

type Outlook = PreviewedWorkload["explanation"]["state"];

const sentences = (): Partial<Record<Outlook, { text: string; color: string }>> => ({
  FitsNow: { text: t`would start now`, color: "teal" },
  Preempts: { text: t`would start once the workloads that it preempts have stopped`, color: "yellow" },
  CannotStart: { text: t`could never start`, color: "red" },
});

/** "train would start now", "train would wait: ..." */
export function outlookOf({ name, explanation }: PreviewedWorkload): { text: string; color: string } {
  const known = sentences()[explanation.state] ?? { text: t`would wait`, color: "yellow" };
  const why = explanation.state === "FitsNow" ? "" : `: ${explanation.message}`;
  return { text: `${name} ${known.text}${why}`, color: known.color };
}

/** "1.25 EUR an hour in a100, at most" */
export function costWords({ costs }: PreviewedWorkload, currency: string): string[] {
  return costs.map(({ flavor, per_hour, is_upper_bound }) =>
    is_upper_bound
      ? t`at most ${per_hour} ${currency} per hour in ${flavor}: a slice costs its share`
      : t`${per_hour} ${currency} per hour in ${flavor}`,
  );
}

const WORST = ["red", "yellow", "teal"];

export function PreviewResult({ preview }: { preview: Preview }) {
  const { workloads, currency, result } = preview;
  const outlooks = workloads.map(outlookOf);
  const color = WORST.find((each) => outlooks.some((outlook) => outlook.color === each)) ?? "teal";
  return (
    <Alert
      color={result.warnings.length > 0 && color === "teal" ? "yellow" : color}
      title={t`The manifest would be accepted`}
    >
      {workloads.length === 0 && (
        <Text size="sm">
          <Trans>The job creates its workloads later.</Trans>
        </Text>
      )}
      <List size="sm">
        {workloads.map((workload, at) => (
          <List.Item key={`${workload.namespace}/${workload.name}`}>
            {outlooks[at]?.text}
            {costWords(workload, currency).map((cost) => (
              <Text key={cost} size="xs">
                {cost}
              </Text>
            ))}
          </List.Item>
        ))}
        {result.warnings.map((warning) => (
          <List.Item key={`${warning.kind} ${warning.name} ${warning.message}`}>
            {warning.kind} {warning.name}: {warning.message}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

/** The result that the submission would have: whether it starts now, why not, and the price of an hour. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, Button, Group, List, Text } from "@mantine/core";
import type { Preview, PreviewedWorkload } from "@/api/types";
import { remedyWords } from "../waiting/remedy-words";
import { waitingSentence } from "../waiting/state-sentence";

type Outlook = PreviewedWorkload["explanation"]["state"];

const sentences = (): Partial<Record<Outlook, { text: string; color: string }>> => ({
  FitsNow: { text: t`would start now`, color: "teal" },
  Preempts: { text: t`would start once the workloads that it preempts have stopped`, color: "yellow" },
  CannotStart: { text: t`could never start`, color: "red" },
});

export interface WorkloadOutlook {
  text: string;
  color: string;
  /** Empty for one that would start now. */
  why: string;
  remedy: string;
}

/** "train would start now", "train would wait", with the reason in a sentence and the remedy. */
export function outlookOf({ name, explanation, pod_sets: podSets }: PreviewedWorkload): WorkloadOutlook {
  const known = sentences()[explanation.state] ?? { text: t`would wait`, color: "yellow" };
  const starts = explanation.state === "FitsNow";
  return {
    text: `${name} ${known.text}`,
    color: known.color,
    why: starts ? "" : waitingSentence(explanation, podSets),
    remedy: starts ? "" : remedyWords(explanation),
  };
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

/** The result in the title: that a manifest is accepted says little where it can never start. */
function titleOf(color: string): string {
  if (color === "red") return t`The manifest would be accepted, but its workloads could never start`;
  if (color === "yellow") return t`The manifest would be accepted, and its workloads would wait`;
  return t`The manifest would be accepted`;
}

/** A queue in which it would start sooner. */
export interface BetterQueue {
  queue: string;
  /** 0: now. */
  rank: number;
  onUse: () => void;
}

export function PreviewResult({ preview, better }: { preview: Preview; better?: BetterQueue | undefined }) {
  const { workloads, currency, result } = preview;
  const outlooks = workloads.map(outlookOf);
  const color = WORST.find((each) => outlooks.some((outlook) => outlook.color === each)) ?? "teal";
  return (
    <Alert color={result.warnings.length > 0 && color === "teal" ? "yellow" : color} title={titleOf(color)}>
      {workloads.length === 0 && (
        <Text size="sm">
          <Trans>The job creates its workloads later.</Trans>
        </Text>
      )}
      <List size="sm">
        {workloads.map((workload, at) => (
          <List.Item key={`${workload.namespace}/${workload.name}`}>
            {outlooks[at]?.text}
            {[outlooks[at]?.why, outlooks[at]?.remedy].map(
              (line) =>
                line && (
                  <Text key={line} size="sm">
                    {line}
                  </Text>
                ),
            )}
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
      {better !== undefined && (
        <Group gap="xs" mt="xs">
          <Text size="sm" fw={600}>
            {better.rank === 0
              ? t`In ${better.queue} it would start now.`
              : t`In ${better.queue} it could start.`}
          </Text>
          <Button size="compact-xs" variant="default" onClick={better.onUse}>
            <Trans>Use this queue</Trans>
          </Button>
        </Group>
      )}
    </Alert>
  );
}

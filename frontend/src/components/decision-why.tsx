/** Why something was decided: the reason in the words that all lists have, then what the scheduler said. */
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import { KeyedWorkloadLink } from "@/components/object-links";
import { decisionLook, whyInShort } from "@/lib/words/decision-action";

export interface DecisionWhyProps {
  decision: {
    action: string;
    reason: string;
    message: string;
    detail: Readonly<Record<string, unknown>>;
  };
}

export function DecisionWhy({ decision }: DecisionWhyProps) {
  const { action, message } = decision;
  const short = whyInShort(decision);
  if (action === "Preempt") return <Preemption decision={decision} short={short} />;
  // What the badge says already is not said again.
  const said = message === decisionLook(action).label || message === short ? "" : message;
  if (short === "" && said === "") return null;
  return (
    <span title={said || undefined}>
      {short}
      {short !== "" && said !== "" && " · "}
      <Text component="span" inherit c="var(--kw-muted)">
        {said}
      </Text>
    </span>
  );
}

/** The workload that the room was made for, which the scheduler's long message names at its end. */
function Preemption({ decision: { message, detail }, short }: DecisionWhyProps & { short: string }) {
  const { preemptor } = detail;
  const known = typeof preemptor === "string" && preemptor !== "";
  return (
    <span title={message || undefined}>
      {known ? (
        <Trans>
          for <KeyedWorkloadLink workload={preemptor} />
        </Trans>
      ) : (
        <Trans>for a workload of another tenant</Trans>
      )}
      {short !== "" && (
        <Text component="span" inherit c="var(--kw-muted)">
          {" · "}
          {short}
        </Text>
      )}
    </span>
  );
}

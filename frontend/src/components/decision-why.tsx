/** Why something was decided: the reason in the words that all lists have, then what the scheduler said. */
import { Text } from "@mantine/core";
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

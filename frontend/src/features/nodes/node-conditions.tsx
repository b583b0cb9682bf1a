/** The conditions of a node, in the cluster's words. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import type { NodeDetail } from "@/api/types";
import { Ago } from "@/components/ago";
import { NoneOf } from "@/components/key-values";
import { Panel } from "@/components/panel";

type NodeCondition = NodeDetail["conditions"][number];

/** Ready should be True, and every other condition of a node (pressures, a missing network) False. */
function isTroubled({ type, status }: Pick<NodeCondition, "type" | "status">): boolean {
  return type === "Ready" ? status !== "True" : status === "True";
}

export function NodeConditions({ conditions }: { conditions: readonly NodeCondition[] }) {
  return (
    <Panel title={t`Conditions`} flush>
      {conditions.length === 0 ? (
        <NoneOf>
          <Trans>The cluster reports no conditions.</Trans>
        </NoneOf>
      ) : (
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Tbody>
            {conditions.map((condition) => (
              <Table.Tr key={condition.type}>
                <Table.Td style={{ overflowWrap: "anywhere" }}>
                  {condition.type}
                  <Text fz="xs" c="var(--kw-muted)">
                    {[condition.reason, condition.message].filter((text) => text !== "").join(": ")}
                  </Text>
                </Table.Td>
                <Table.Td c={isTroubled(condition) ? "var(--kw-over)" : "var(--kw-good)"} fw={600}>
                  {condition.status}
                </Table.Td>
                <Table.Td ta="right">
                  <Ago time={condition.last_transition_time} short />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Panel>
  );
}

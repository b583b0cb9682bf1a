/** Kueue's conditions, word for word. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import type { Condition, WorkloadDetail } from "@/api/types";
import { Ago } from "@/components/ago";
import { EmptyState } from "@/components/empty-state";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";

/** The checks that must pass before it is admitted. */
export function AdmissionChecks({ checks }: { checks: WorkloadDetail["admission_checks"] }) {
  if (checks.length === 0) return null;
  return (
    <Panel title={t`Admission checks`} flush>
      <WideTable>
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Tbody>
            {checks.map((check) => (
              <Table.Tr key={check.name}>
                <Table.Td fw={550}>{check.name}</Table.Td>
                <Table.Td>
                  {check.state}
                  <Text fz="xs" c="var(--kw-muted)" style={{ overflowWrap: "anywhere" }}>
                    {check.message}
                  </Text>
                </Table.Td>
                <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                  <Ago time={check.last_transition_time ?? null} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

const BAD_WHEN_TRUE = [
  "Evicted",
  "Preempted",
  "PodsFailed",
  "DeactivationTarget",
  "BlockedOnPreemptionGates",
];

/** Green is what lets it run; that it was evicted is no good news, though the condition is True. */
export function conditionColor({ type, status }: Pick<Condition, "type" | "status">): string {
  if (status !== "True") return "var(--kw-muted)";
  return BAD_WHEN_TRUE.includes(type) ? "var(--kw-over)" : "var(--kw-good)";
}

export function Conditions({ conditions }: { conditions: Condition[] }) {
  return (
    <Panel title={t`Conditions`} flush>
      {conditions.length === 0 ? (
        <EmptyState icon="info" title={t`No conditions yet`}>
          <Trans>The scheduler sets the first condition when it evaluates the workload.</Trans>
        </EmptyState>
      ) : (
        <WideTable>
          <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>
                  <Trans>Condition</Trans>
                </Table.Th>
                <Table.Th>
                  <Trans>Reason and message</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Since</Trans>
                </Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {conditions.map((condition) => (
                <Table.Tr key={condition.type}>
                  <Table.Td style={{ whiteSpace: "nowrap" }}>
                    {condition.type}
                    <Text fz="xs" c={conditionColor(condition)} fw={600}>
                      {condition.status}
                    </Text>
                  </Table.Td>
                  <Table.Td>
                    <Text fz="sm" fw={550}>
                      {condition.reason}
                    </Text>
                    <Text fz="xs" c="var(--kw-muted)" style={{ overflowWrap: "anywhere" }}>
                      {condition.message}
                    </Text>
                  </Table.Td>
                  <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                    <Ago time={condition.last_transition_time} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

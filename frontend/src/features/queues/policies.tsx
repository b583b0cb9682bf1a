/** How a ClusterQueue preempts and chooses flavors. */
import { t } from "@lingui/core/macro";
import { Table } from "@mantine/core";
import type { ClusterQueue } from "@/api/types";
import { Panel } from "@/components/panel";

/** Nested settings as lines: "borrowWithinCohort.policy", "Never". */
export function policyLines(value: Record<string, unknown>, prefix = ""): [string, string][] {
  return Object.entries(value).flatMap(([name, setting]): [string, string][] =>
    typeof setting === "object" && setting !== null && !Array.isArray(setting)
      ? policyLines(setting as Record<string, unknown>, `${prefix}${name}.`)
      : [[`${prefix}${name}`, Array.isArray(setting) ? setting.join(", ") : String(setting ?? "") || "–"]],
  );
}

export function Policies({ queue }: { queue: ClusterQueue }) {
  const lines = [
    ...policyLines(queue.preemption),
    ...policyLines(queue.flavor_fungibility),
    ...policyLines(queue.preemption_protection, "protection."),
  ];
  if (lines.length === 0) return null;
  return (
    <Panel title={t`Preemption and flavors`} flush>
      <Table fz="sm" verticalSpacing={7} horizontalSpacing="md">
        <Table.Tbody>
          {lines.map(([name, setting]) => (
            <Table.Tr key={name}>
              <Table.Td c="var(--kw-muted)" style={{ overflowWrap: "anywhere" }}>
                {name}
              </Table.Td>
              <Table.Td ta="right">{setting}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}

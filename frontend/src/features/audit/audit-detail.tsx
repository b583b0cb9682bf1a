/** One record of the audit, whole. */
import { Modal, Table, Text } from "@mantine/core";
import type { AuditRecord } from "@/api/types";
import { changesOf } from "@/lib/words/audit-change";
import { objectOf, VERB_LOOKS } from "./audit-columns";

const FACTS = [
  ["at", "When"],
  ["username", "User"],
  ["credential", "With"],
  ["address", "From"],
  ["user_agent", "Program"],
  ["process", "Process"],
  ["request", "Request"],
  ["request_id", "Request id"],
  ["reason", "Reason"],
  ["message", "Refused because"],
] as const;

export function AuditDetail({ record, onClose }: { record: AuditRecord | null; onClose: () => void }) {
  return (
    <Modal
      opened={record !== null}
      onClose={onClose}
      size="xl"
      title={record === null ? "" : `${VERB_LOOKS[record.verb].label}: ${objectOf(record)}`}
    >
      {record !== null && <Detail record={record} />}
    </Modal>
  );
}

function Detail({ record }: { record: AuditRecord }) {
  const changes = changesOf(record.before, record.after);
  return (
    <>
      <Table withRowBorders={false} layout="fixed">
        <Table.Tbody>
          {FACTS.filter(([name]) => record[name] !== "").map(([name, label]) => (
            <Table.Tr key={name}>
              <Table.Th w={130}>{label}</Table.Th>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{record[name]}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {changes.length > 0 && (
        <Table mt="md" layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Field</Table.Th>
              <Table.Th>Before</Table.Th>
              <Table.Th>After</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {changes.map(({ field, before, after }) => (
              <Table.Tr key={field} style={{ overflowWrap: "anywhere" }}>
                <Table.Td>{field}</Table.Td>
                <Table.Td>{before ?? <Nothing />}</Table.Td>
                <Table.Td>{after ?? <Nothing />}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </>
  );
}

function Nothing() {
  return (
    <Text span inherit c="dimmed">
      –
    </Text>
  );
}

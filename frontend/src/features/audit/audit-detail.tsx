/** One record of the audit, whole. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Modal, Table, Text } from "@mantine/core";
import type { AuditRecord } from "@/api/types";
import { changesOf } from "@/lib/words/audit-change";
import { objectOf, verbLooks } from "./audit-columns";

const facts = () =>
  [
    ["at", t`When`],
    ["username", t`User name`],
    ["credential", t`Credential`],
    ["address", t`From`],
    ["user_agent", t`Program`],
    ["process", t`Process`],
    ["cluster", t`Cluster`],
    ["request", t`Request`],
    ["request_id", t`Request id`],
    ["reason", t`Reason`],
    ["message", t`Refused because`],
  ] as const;

export function AuditDetail({ record, onClose }: { record: AuditRecord | null; onClose: () => void }) {
  return (
    <Modal
      opened={record !== null}
      onClose={onClose}
      size="xl"
      title={record === null ? "" : `${verbLooks()[record.verb].label}: ${objectOf(record)}`}
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
          {facts()
            .filter(([name]) => record[name] !== "")
            .map(([name, label]) => (
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
              <Table.Th>
                <Trans>Field</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Before</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>After</Trans>
              </Table.Th>
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

/** Changes, before and after, line by line. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Badge, Table, Text } from "@mantine/core";
import type { Change } from "@/lib/manifest/changes";
import type { Value } from "@/lib/manifest/object";
import { changeWords } from "./change-words";
import classes from "./objects.module.css";

interface ChangeListProps {
  changes: readonly Change[];
  /** The object with these changes. */
  whole: Value;
  /** The changes of fields that another user changed, too. */
  disputed?: readonly Change[];
}

export function ChangeList({ changes, whole, disputed = [] }: ChangeListProps) {
  return (
    <Table
      fz="xs"
      verticalSpacing={4}
      horizontalSpacing="xs"
      className={classes.changes}
      aria-label={t`Changes`}
    >
      <Table.Thead>
        <Table.Tr>
          <Table.Th>
            <Trans>Changes to the object</Trans>
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
        {changes.map((change) => {
          const { key, label, before, after } = changeWords(change, whole);
          return (
            <Table.Tr key={key}>
              <Table.Td>
                {label}{" "}
                {disputed.includes(change) && (
                  <Badge size="xs" color="orange" tt="none" variant="light">
                    <Trans>affects you</Trans>
                  </Badge>
                )}
              </Table.Td>
              <Table.Td>
                <Text
                  span
                  fz="inherit"
                  c="var(--kw-muted)"
                  td={change.before === undefined ? "none" : "line-through"}
                >
                  {before}
                </Text>
              </Table.Td>
              <Table.Td fw={550}>{after}</Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}

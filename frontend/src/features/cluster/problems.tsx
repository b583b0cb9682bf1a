/** Kueue's objects in the cluster that are not as ours, and why. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Table, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { servedProblemsQuery } from "@/api/cluster-settings";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";

export function Problems() {
  const problems = useInfiniteQuery(servedProblemsQuery(useCluster()));
  const rows = problems.data?.pages.flatMap((page) => page.results) ?? [];
  return (
    <Panel title={t`Objects that differ`} flush>
      <QueryError title={t`This list cannot be shown`} query={problems} />
      {problems.data !== undefined && rows.length === 0 && (
        <Text p="md" fz="sm" c="var(--kw-muted)">
          <Trans>None: Kueue's objects are the same in the cluster and here.</Trans>
        </Text>
      )}
      {rows.length > 0 && (
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={`${row.kind} ${row.namespace}/${row.name}`}>
                <Table.Td>
                  {row.kind} {row.namespace === "" ? row.name : `${row.namespace}/${row.name}`}
                </Table.Td>
                <Table.Td style={{ overflowWrap: "anywhere" }}>{row.problem}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {problems.hasNextPage && (
        <Group justify="center" p="sm">
          <Button variant="default" size="xs" onClick={() => void problems.fetchNextPage()}>
            <Trans>More</Trans>
          </Button>
        </Group>
      )}
    </Panel>
  );
}

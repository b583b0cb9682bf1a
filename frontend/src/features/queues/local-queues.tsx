/** The LocalQueues that lead into a ClusterQueue. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { localQueuesQuery } from "@/api/queues";
import { BadgeDot } from "@/components/badge-dot";
import { EmptyState } from "@/components/empty-state";
import { LocalQueueLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { formatCount } from "@/lib/quantity";

export function LocalQueues({ clusterQueue }: { clusterQueue: string }) {
  const queues = useQuery(localQueuesQuery(useCluster(), clusterQueue));
  const rows = queues.data?.results;
  return (
    <Panel title={t`LocalQueues`} flush>
      {queues.isPending && <Skeleton height={100} m="md" />}
      <QueryError title={t`This list cannot be shown`} query={queues} />
      {rows?.length === 0 && (
        <EmptyState icon="queues" title={t`No LocalQueue refers to this queue`}>
          <Trans>Namespaces submit through a LocalQueue that refers to this ClusterQueue.</Trans>
        </EmptyState>
      )}
      {rows !== undefined && rows.length > 0 && (
        <WideTable whole>
          <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>
                  <Trans>LocalQueue</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Pending</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Admitted</Trans>
                </Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((queue) => (
                <Table.Tr key={`${queue.namespace}/${queue.name}`}>
                  <Table.Td>
                    <LocalQueueLink namespace={queue.namespace} name={queue.name} fw={550} />
                    <Text fz="xs" c="var(--kw-muted)">
                      {queue.namespace}
                    </Text>
                    {queue.stop_policy !== "None" && (
                      <BadgeDot label={t`Stopped: ${queue.stop_policy}`} color="orange" />
                    )}
                  </Table.Td>
                  <Table.Td ta="right">{formatCount(queue.pending)}</Table.Td>
                  <Table.Td ta="right">{formatCount(queue.admitted)}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

/** How much of what is idle could not be used, and the largest request that still fits. */

import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { fragmentationQuery } from "@/api/devices";
import type { LargestRequest } from "@/api/types";
import { Meter } from "@/components/figures/meter";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { numbers } from "@/lib/language";
import { formatMib, formatShare } from "@/lib/quantity";
import { deviceModel } from "@/lib/words/device-words";

export function FragmentationPanel() {
  const fragmentation = useQuery(fragmentationQuery(useCluster()));
  const report = fragmentation.data?.cluster;
  return (
    <Panel title={t`Fragmentation`} w="100%" flush>
      {fragmentation.isPending && <Skeleton height={140} width="auto" m="md" />}
      <QueryError title={t`The fragmentation cannot be shown`} query={fragmentation} />
      {report !== undefined && (
        <>
          <Idle
            idle={report.idle_milli / 1000}
            fragmented={milli(report.fragmented_milli)}
            devices={report.devices}
          />
          <LargestTable largest={report.largest} />
        </>
      )}
    </Panel>
  );
}

function milli(value: number | null): number | null {
  return value === null ? null : value / 1000;
}

const oneDecimal = numbers({ maximumFractionDigits: 1 });

/** In devices' worth of memory. */
function Idle({ idle, fragmented, devices }: { idle: number; fragmented: number | null; devices: number }) {
  const sentence =
    fragmented === null
      ? t`The memory of ${oneDecimal(idle)} of ${devices} devices is idle; how much of it is unusable is known once pods have run.`
      : t`The memory of ${oneDecimal(idle)} of ${devices} devices is idle; a typical pod cannot use ${oneDecimal(fragmented)} of that (${formatShare(fragmented, idle)}): the piece is too small, or its node lacks cpu or memory.`;
  return (
    <div style={{ padding: "4px 16px 12px" }}>
      <Text fz="sm" mb={6}>
        {sentence}
      </Text>
      <Meter
        height={10}
        label={sentence}
        total={devices}
        segments={[
          { value: devices - idle, color: "var(--kw-used)", label: "held" },
          { value: fragmented ?? 0, color: "var(--kw-borrowed)", label: t`idle, fragmented`, striped: true },
        ]}
      />
    </div>
  );
}

function LargestTable({ largest }: { largest: LargestRequest[] }) {
  const counts = [...new Set(largest.map(({ count }) => count))].sort((a, b) => a - b);
  const types = [...new Set(largest.map(({ type }) => type))].sort();
  if (types.length === 0) return null;
  return (
    <WideTable>
      <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>
              <Trans>Largest request that fits one node</Trans>
            </Table.Th>
            {counts.map((count) => (
              <Table.Th key={count} ta="right">
                {plural(count, { one: "# device", other: "# devices, each" })}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {types.map((type) => (
            <Table.Tr key={type}>
              <Table.Td>{deviceModel(type)}</Table.Td>
              {counts.map((count) => (
                <LargestCell
                  key={count}
                  found={largest.find((each) => each.type === type && each.count === count)}
                />
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </WideTable>
  );
}

function LargestCell({ found }: { found: LargestRequest | undefined }) {
  if (found === undefined || !found.fits || found.memory_mib === 0) {
    return (
      <Table.Td ta="right" c="var(--kw-muted)">
        <Trans>none</Trans>
      </Table.Td>
    );
  }
  return (
    <Table.Td ta="right" title={t`on ${found.node}`}>
      {formatMib(found.memory_mib)}, {found.cores_percent} %
    </Table.Td>
  );
}

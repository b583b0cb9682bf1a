/** The resources of a node: allocatable, requested, and the measured use of its devices. */

import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { deviceUsageQuery } from "@/api/devices";
import type { NodeDetail } from "@/api/types";
import { Meter } from "@/components/figures/meter";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort, formatMib, formatShare } from "@/lib/quantity";
import { amountsOf } from "./summary";

export function NodeAmounts({ node }: { node: NodeDetail }) {
  const amounts = amountsOf(node);
  const totals = node.device_totals;
  const used = useUsed(node.name);
  return (
    <Panel title={t`Resources`} flush>
      <WideTable whole blocks>
        <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Resource</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Allocatable</Trans>
              </Table.Th>
              <Table.Th ta="right" title={t`Requests of all pods on the node, unmanaged ones included`}>
                <Trans>Requested</Trans>
              </Table.Th>
              <Table.Th ta="right">
                <Trans>Free</Trans>
              </Table.Th>
              <Table.Th ta="right" title={t`As reported by monitors; a dash means no report`}>
                <Trans>Measured use</Trans>
              </Table.Th>
              <Table.Th miw={120} w="24%" />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {amounts.map(({ resource, requested, total }) => (
              <AmountRow
                key={resource}
                name={resource}
                format={(amount) => formatAmountShort(resource, amount)}
                held={requested}
                total={total}
              />
            ))}
            {totals.devices > 0 && (
              <>
                <AmountRow
                  name={plural(totals.devices, { one: "memory of # GPU", other: "memory of # GPUs" })}
                  format={formatMib}
                  held={totals.used_memory_mib}
                  total={totals.memory_mib}
                  used={used?.memoryMib == null ? null : formatMib(used.memoryMib)}
                />
                <AmountRow
                  name={plural(totals.devices, { one: "cores of # GPU", other: "cores of # GPUs" })}
                  format={(percent) => `${percent} %`}
                  held={totals.used_cores_percent}
                  total={totals.cores_percent}
                  used={used?.busyPercent == null ? null : `${Math.round(used.busyPercent)} %`}
                />
                <MeasuredRow
                  name={t`hottest GPU`}
                  value={used?.hottestCelsius ?? null}
                  words={(value) => t`${Math.round(value)} °C`}
                />
                <MeasuredRow
                  name={plural(totals.devices, { one: "power of # GPU", other: "power of # GPUs" })}
                  value={used?.watts ?? null}
                  words={(value) => t`${Math.round(value)} W`}
                />
              </>
            )}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

/** A figure that is measured and never requested. */
function MeasuredRow({
  name,
  value,
  words,
}: {
  name: string;
  value: number | null;
  words: (value: number) => string;
}) {
  return (
    <Table.Tr>
      <Table.Td data-wide>{name}</Table.Td>
      <Table.Td colSpan={4} ta="right" data-wide>
        {value === null ? t`no telemetry` : words(value)}
      </Table.Td>
      <Table.Td data-none />
    </Table.Tr>
  );
}

interface AmountRowProps {
  name: string;
  format: (amount: number) => string;
  held: number;
  total: number | null;
  used?: string | null;
}

function AmountRow({ name, format, held, total, used = null }: AmountRowProps) {
  const share = total === null ? "" : t`${formatShare(held, total)} requested`;
  return (
    <Table.Tr>
      <Table.Td data-wide>{name}</Table.Td>
      <Table.Td ta="right" data-label={t`Allocatable`}>
        {total === null ? t`not known` : format(total)}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Requested`}>
        {format(held)}
      </Table.Td>
      <Table.Td
        ta="right"
        data-label={t`Free`}
        c={total !== null && held > total ? "var(--kw-over)" : "inherit"}
      >
        {total === null ? "–" : held > total ? t`${format(held - total)} over` : format(total - held)}
      </Table.Td>
      <Table.Td ta="right" data-label={t`Measured use`} data-none={used === null || undefined}>
        {used ?? "–"}
      </Table.Td>
      <Table.Td title={share} data-wide>
        {total !== null && (
          <Meter
            total={total}
            label={share}
            segments={[
              {
                value: held,
                color: held > total ? "var(--kw-over)" : "var(--kw-used)",
                label: share,
              },
            ]}
          />
        )}
      </Table.Td>
    </Table.Tr>
  );
}

/** Each is null where no device measures it. */
interface Used {
  memoryMib: number | null;
  busyPercent: number | null;
  hottestCelsius: number | null;
  watts: number | null;
}

function measured(values: (number | null)[], of: (all: number[]) => number): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : of(known);
}

/** The present use of the node's devices; null without any report. */
function useUsed(node: string): Used | null {
  const usage = useQuery(deviceUsageQuery(useCluster()));
  const rows = usage.data?.results.filter((row) => row.node === node) ?? [];
  if (rows.length === 0) return null;
  const sum = (all: number[]) => all.reduce((total, each) => total + each, 0);
  return {
    memoryMib: measured(
      rows.map((row) => row.memory_used_mib),
      sum,
    ),
    busyPercent: measured(
      rows.map((row) => row.utilization_percent),
      sum,
    ),
    hottestCelsius: measured(
      rows.map((row) => row.temperature_celsius),
      (all) => Math.max(...all),
    ),
    watts: measured(
      rows.map((row) => row.power_watts),
      sum,
    ),
  };
}

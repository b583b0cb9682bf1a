/** Where it runs: the pods, and which slice of which device each of their containers holds. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import { useLive } from "@/api/cluster";
import type { AllocatedDevice, WorkloadDetail } from "@/api/types";
import { Meter } from "@/components/figures/meter";
import { DeviceLink, NodeLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatMib } from "@/lib/quantity";
import { tenantColor } from "@/lib/tenant-color";

export function Devices({ workload }: { workload: WorkloadDetail }) {
  if (workload.devices.length === 0) return null;
  return (
    <Panel title={t`Where it runs`} flush>
      <WideTable>
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Pod and container</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Node and device</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Memory</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Cores</Trans>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {workload.devices.map((device) => (
              <DeviceRow
                key={`${device.pod_set} ${device.replica} ${device.container} ${device.uuid}`}
                device={device}
                namespace={workload.namespace}
              />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

function DeviceRow({ device, namespace }: { device: AllocatedDevice; namespace: string }) {
  const known = useLive((live) => live.data?.devices[device.uuid]);
  const color = tenantColor(namespace);
  const memory = formatMib(device.memory_mib);
  return (
    <Table.Tr>
      <Table.Td>
        {device.pod_set}-{device.replica}
        <Text fz="xs" c="var(--kw-muted)">
          {device.container}
        </Text>
      </Table.Td>
      <Table.Td>
        <NodeLink name={device.node} />{" "}
        <DeviceLink
          node={device.node}
          uuid={device.uuid}
          label={known === undefined ? t`device` : t`device ${known.index}`}
        />
        <Text fz="xs" c="var(--kw-muted)" title={device.uuid} truncate maw={220}>
          {device.uuid}
        </Text>
      </Table.Td>
      <Table.Td miw={110}>
        {memory}
        {known !== undefined && (
          <Meter
            height={5}
            label={t`${memory} of ${formatMib(known.memory_mib)}`}
            total={known.memory_mib}
            segments={[{ value: device.memory_mib, color, label: memory }]}
          />
        )}
      </Table.Td>
      <Table.Td miw={90}>
        {device.cores_percent === 0 ? t`not limited` : `${device.cores_percent} %`}
        {device.cores_percent > 0 && (
          <Meter
            height={5}
            label={t`${device.cores_percent} % of the device's cores`}
            total={known?.cores_percent ?? 100}
            segments={[{ value: device.cores_percent, color, label: `${device.cores_percent} %` }]}
          />
        )}
      </Table.Td>
    </Table.Tr>
  );
}

/** The named slices of named cards that it holds. */
import { Table, Text } from "@mantine/core";
import { useLive } from "@/api/cluster";
import type { AllocatedDevice, WorkloadDetail } from "@/api/types";
import { TextLink } from "@/components/link";
import { Meter } from "@/components/meter";
import { Panel } from "@/components/panel";
import { formatMib } from "@/lib/quantity";
import { tenantColor } from "@/lib/tenant-color";
import classes from "./workloads.module.css";

export function Devices({ workload }: { workload: WorkloadDetail }) {
  if (workload.devices.length === 0) return null;
  return (
    <Panel title="Devices held" flush>
      <div className={classes.scroll}>
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Pod and container</Table.Th>
              <Table.Th>Card</Table.Th>
              <Table.Th>Memory</Table.Th>
              <Table.Th>Cores</Table.Th>
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
      </div>
    </Panel>
  );
}

function DeviceRow({ device, namespace }: { device: AllocatedDevice; namespace: string }) {
  const card = useLive((live) => live.data?.devices[device.uuid]);
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
        <TextLink to="/gpus" search={{ node: device.node }} fz="inherit">
          {device.node}
          {card !== undefined && ` · card ${card.index}`}
        </TextLink>
        <Text fz="xs" c="var(--kw-muted)" title={device.uuid} truncate maw={220}>
          {device.uuid}
        </Text>
      </Table.Td>
      <Table.Td miw={110}>
        {memory}
        {card !== undefined && (
          <Meter
            height={5}
            label={`${memory} of ${formatMib(card.memory_mib)}`}
            total={card.memory_mib}
            segments={[{ value: device.memory_mib, color, label: memory }]}
          />
        )}
      </Table.Td>
      <Table.Td miw={90}>
        {device.cores_percent === 0 ? "not limited" : `${device.cores_percent} %`}
        {device.cores_percent > 0 && (
          <Meter
            height={5}
            label={`${device.cores_percent} % of the card's cores`}
            total={card?.cores_percent ?? 100}
            segments={[{ value: device.cores_percent, color, label: `${device.cores_percent} %` }]}
          />
        )}
      </Table.Td>
    </Table.Tr>
  );
}

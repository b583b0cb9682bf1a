/** One device: what it is, how full it is, and each slice with its holder. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Code, Drawer, Group, Stack, Table, Text } from "@mantine/core";
import type { LiveDevice, LiveSlice } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { EmptyState } from "@/components/empty-state";
import { Meter } from "@/components/figures/meter";
import { TextLink } from "@/components/link";
import { WideTable } from "@/components/table/wide-table";
import { formatMib, formatShare } from "@/lib/quantity";
import { tenantColor } from "@/lib/tenant-color";
import { gpuState } from "@/lib/url/gpu-filters";
import { deviceModel, partsWord } from "@/lib/words/device-words";
import { cordonState } from "@/lib/words/node-state";
import { CordonButtons } from "../cordon";
import { gpuStateLooks } from "../gpu-state";
import { deviceTitle, formatCores } from "../units";
import { DeviceFacts } from "./device-facts";
import { DeviceUse } from "./device-use";
import { MigPlacement, placeWords } from "./mig-placement";

export interface DeviceDrawerProps {
  uuid: string | undefined;
  /** Undefined while none is opened, or when the opened one is gone. */
  device: LiveDevice | undefined;
  onClose: () => void;
}

export function DeviceDrawer({ uuid, device, onClose }: DeviceDrawerProps) {
  const title = device === undefined ? t`Device` : deviceTitle(device);
  return (
    <Drawer opened={uuid !== undefined} onClose={onClose} position="right" size="lg" title={<b>{title}</b>}>
      {device === undefined ? (
        <EmptyState icon="gpus" title={t`This device no longer exists`}>
          <Trans>No node registers device {uuid}.</Trans>
        </EmptyState>
      ) : (
        <Stack data-live>
          <Facts uuid={uuid ?? ""} device={device} />
          <CordonButtons target={{ device: uuid ?? "" }} name={title} state={cordonState(device)} />
          <Use
            device={device}
            of="memory_mib"
            label={t`Memory`}
            used={device.used_memory_mib}
            total={device.memory_mib}
          />
          <Use
            device={device}
            of="cores_percent"
            label={t`Cores`}
            used={device.used_cores_percent}
            total={device.cores_percent}
            own={device.units.cores_unit === "%" ? undefined : formatCores(device.units)}
          />
          <DeviceUse uuid={uuid ?? ""} memoryMib={device.memory_mib} />
          <DeviceFacts uuid={uuid ?? ""} device={device} />
          <MigPlacement device={device} />
          <SliceTable device={device} />
        </Stack>
      )}
    </Drawer>
  );
}

function Facts({ uuid, device }: { uuid: string; device: LiveDevice }) {
  const { label, color, meaning } = gpuStateLooks()[gpuState(device)];
  return (
    <Stack gap={6}>
      <Group gap="xs">
        <BadgeDot label={label} color={color} hint={meaning} />
        <Text fz="sm">
          {device.type.startsWith(device.vendor)
            ? deviceModel(device.type)
            : `${device.vendor} ${device.type}`}
        </Text>
      </Group>
      <Code style={{ overflowWrap: "anywhere" }}>{uuid}</Code>
      <Text fz="sm" c="var(--kw-muted)">
        <Trans>
          on{" "}
          <TextLink to="/gpus" search={{ node: device.node }} fz="inherit" underline="always">
            {device.node}
          </TextLink>
          , {device.used_slots} of {device.slots} {partsWord(device.units.parts)} held
        </Trans>
      </Text>
    </Stack>
  );
}

interface UseProps {
  device: LiveDevice;
  of: "memory_mib" | "cores_percent";
  label: string;
  used: number;
  total: number;
  /** The same in the vendor's own unit. */
  own?: string | undefined;
}

function Use({ device, of, label, used, total, own }: UseProps) {
  const format = (value: number) => (of === "memory_mib" ? formatMib(value) : `${value} %`);
  const amounts = t`${format(used)} of ${format(total)}`;
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <Text fz="sm" fw={550}>
          {label}
        </Text>
        <Text fz="sm" className="kw-number">
          {own ?? `${amounts} (${formatShare(used, total)})`}
        </Text>
      </Group>
      <Meter
        height={14}
        label={`${label}: ${amounts}`}
        total={total}
        segments={device.slices.map((slice) => ({
          value: slice[of],
          color: tenantColor(slice.namespace),
          label: `${slice.workload ?? t`in use`}: ${format(slice[of])}`,
        }))}
      />
    </div>
  );
}

function SliceTable({ device }: { device: LiveDevice }) {
  if (device.slices.length === 0) {
    return <EmptyState icon="check" title={t`No workload holds a slice of this device`} />;
  }
  const inMigMode = device.mig_places !== undefined;
  return (
    <WideTable>
      <Table fz="sm" verticalSpacing={7} layout="auto">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>
              <Trans>Holder</Trans>
            </Table.Th>
            {inMigMode && (
              <Table.Th>
                <Trans>MIG instance</Trans>
              </Table.Th>
            )}
            <Table.Th ta="right">
              <Trans>Memory</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Cores</Trans>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {device.slices.map((slice, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a slice has no identity of its own
            <Table.Tr key={place}>
              <Table.Td>
                <Holder slice={slice} />
              </Table.Td>
              {inMigMode && <Table.Td>{migWords(slice)}</Table.Td>}
              <Table.Td ta="right">{formatMib(slice.memory_mib)}</Table.Td>
              <Table.Td ta="right">
                {slice.cores_percent === 0 ? t`not limited` : `${slice.cores_percent} %`}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </WideTable>
  );
}

/** "1g.5gb, memory slices 0 to 3"; a slice may have several instances. */
function migWords({ mig = [] }: LiveSlice): string {
  return mig.map((instance) => t`${instance.profile}, memory slices: ${placeWords(instance)}`).join("; ");
}

function Holder({ slice }: { slice: LiveSlice }) {
  const dot = (
    <i
      style={{
        display: "inline-block",
        width: 10,
        height: 10,
        borderRadius: 3,
        marginRight: 8,
        background: tenantColor(slice.namespace),
      }}
    />
  );
  if (slice.workload === null) {
    return (
      <>
        {dot}
        <Trans>in use by another tenant or an unmanaged pod</Trans>
      </>
    );
  }
  const [namespace = "", name = ""] = slice.workload.split("/");
  return (
    <>
      {dot}
      <TextLink to="/workloads/$namespace/$name" params={{ namespace, name }} fz="inherit">
        {slice.workload}
      </TextLink>
      <Text fz="xs" c="var(--kw-muted)" pl={18}>
        {slice.pod_set}-{slice.replica}, {slice.container}
      </Text>
    </>
  );
}

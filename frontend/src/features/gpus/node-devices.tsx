/** One node with its devices. Large clusters have thousands of devices: a node draws again only when one of its own changed. */

import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Text, VisuallyHidden } from "@mantine/core";
import { memo } from "react";
import type { LiveDevice, LiveSlice } from "@/api/types";
import { Icon } from "@/components/icon";
import { formatMib, formatMibOf, formatShare } from "@/lib/quantity";
import { tenantColor } from "@/lib/tenant-color";
import { gpuState } from "@/lib/url/gpu-filters";
import { deviceModel, partsWord } from "@/lib/words/device-words";
import type { CordonState } from "@/lib/words/node-state";
import { CordonMenu } from "./cordon";
import { DeviceHint, useRest } from "./device/device-facts";
import { gpuStateLooks } from "./gpu-state";
import classes from "./gpus.module.css";
import type { DeviceEntry, NodeGroup } from "./summary";
import { deviceTitle, formatCores, formatCoresShort, sliceCores, sliceShare } from "./units";

export interface NodeDevicesProps {
  group: NodeGroup;
  /** The condition that keeps pods off the node. */
  fault: string | undefined;
  /** Only for a node's name with its menu. */
  cordon?: CordonState;
  compact: boolean;
  /** Without the node's name, where the page says it. */
  bare?: boolean;
  /** Slices of other namespaces fade. */
  highlight: string | undefined;
  onOpen: (uuid: string) => void;
}

export const NodeDevices = memo(
  function NodeDevices({ group, fault, cordon, compact, bare = false, highlight, onOpen }: NodeDevicesProps) {
    const DeviceView = compact ? CompactDevice : FullDevice;
    return (
      <section
        className={bare ? undefined : classes.node}
        data-compact={compact || undefined}
        aria-label={t`Node ${group.node}`}
      >
        {!bare && <NodeHead group={group} fault={fault} cordon={cordon} compact={compact} />}
        <div className={compact ? classes.compactDevices : classes.devices}>
          {group.entries.map((entry) => (
            <DeviceView key={entry.uuid} entry={entry} highlight={highlight} onOpen={onOpen} />
          ))}
        </div>
      </section>
    );
  },
  // `onOpen` differs each time and means the same as long as the rest does.
  (before, after) =>
    before.compact === after.compact &&
    before.fault === after.fault &&
    before.cordon === after.cordon &&
    before.highlight === after.highlight &&
    before.group.entries.length === after.group.entries.length &&
    before.group.entries.every((entry, place) => entry.device === after.group.entries[place]?.device),
);

type NodeHeadProps = Pick<NodeDevicesProps, "group" | "fault" | "cordon" | "compact">;

function NodeHead({ group, fault, cordon, compact }: NodeHeadProps) {
  const sum = (of: (device: LiveDevice) => number) =>
    group.entries.reduce((total, entry) => total + of(entry.device), 0);
  const memory = formatShare(
    sum((device) => device.used_memory_mib),
    sum((device) => device.memory_mib),
  );
  const cores = formatShare(
    sum((device) => device.units.used_cores),
    sum((device) => device.units.cores),
  );
  const counted = [
    ...new Set(group.entries.flatMap(({ device: { units } }) => [units.parts, units.cores_unit])),
  ].filter((unit) => unit !== "slots" && unit !== "%");
  const types = [...new Set(group.entries.map((entry) => deviceModel(entry.device.type)))].join(", ");
  return (
    <Group justify="space-between" gap={6} wrap="nowrap" className={classes.nodeHead}>
      <Text fz="sm" fw={620} truncate title={group.node} maw="75%" style={{ flexShrink: 0 }}>
        {group.node}
        {fault !== undefined && <span className={classes.fault}>{fault}</span>}
      </Text>
      <Group gap={6} wrap="nowrap" miw={0}>
        <Text
          fz="xs"
          c="var(--kw-muted)"
          className="kw-number"
          truncate
          title={t`memory ${memory}, cores ${cores}`}
        >
          {compact
            ? `${memory} · ${cores}`
            : [types, ...counted, `memory ${memory}`, `cores ${cores}`].join(" · ")}
        </Text>
        {!compact && <CordonMenu target={{ node: group.node }} name={group.node} state={cordon} />}
      </Group>
    </Group>
  );
}

interface DeviceProps {
  entry: DeviceEntry;
  highlight: string | undefined;
  onOpen: (uuid: string) => void;
}

function describe({ device }: DeviceEntry): string {
  const state = gpuStateLooks()[gpuState(device)].label;
  const cores =
    device.units.cores_unit === "%" ? t`${device.used_cores_percent} % of cores` : formatCores(device.units);
  const held = t`${formatMib(device.used_memory_mib)} of ${formatMib(device.memory_mib)} and ${cores} held`;
  return t`${deviceTitle(device)}, ${deviceModel(device.type)}: ${state}, ${held} in ${plural(device.slices.length, { one: "# slice", other: "# slices" })}`;
}

function FullDevice({ entry, highlight, onOpen }: DeviceProps) {
  const { device } = entry;
  const { element, rests, handlers } = useRest();
  return (
    <button
      ref={element}
      {...handlers}
      type="button"
      className={classes.device}
      data-state={gpuState(device)}
      onClick={() => onOpen(entry.uuid)}
    >
      {rests && <DeviceHint uuid={entry.uuid} device={device} target={element} />}
      {/* This says all of it in words: who hears it needs no digits of their own. */}
      <VisuallyHidden>{describe(entry)}</VisuallyHidden>
      <span className={classes.deviceHead} aria-hidden>
        <b>{device.index}</b>
        {!device.health && (
          <span className={classes.ill}>
            <Icon name="alert" size={13} /> <Trans>unhealthy</Trans>
          </span>
        )}
        <span className="kw-number" title={t`${partsWord(device.units.parts)} held`}>
          {device.used_slots}/{device.slots}
        </span>
      </span>
      <Slices
        device={device}
        share={(slice) => sliceShare(device, slice.memory_mib)}
        highlight={highlight}
        height={16}
      />
      <Slices device={device} share={(slice) => sliceCores(device, slice)} highlight={highlight} height={6} />
      <span className={`${classes.deviceFoot} kw-number`} aria-hidden>
        <span>{formatMibOf(device.used_memory_mib, device.memory_mib)}</span>
        <span title={formatCores(device.units)}>{formatCoresShort(device.units)}</span>
      </span>
    </button>
  );
}

interface SlicesProps {
  device: LiveDevice;
  share: (slice: LiveSlice) => number;
  highlight: string | undefined;
  height: number;
}

function Slices({ device, share, highlight, height }: SlicesProps) {
  return (
    <span className={classes.bar} style={{ height }} aria-hidden>
      {device.slices.map((slice, place) => (
        <i
          // A slice has no identity of its own; its place is as good as any.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          key={place}
          title={t`${slice.workload ?? t`in use`}: ${formatMib(slice.memory_mib)}, ${slice.cores_percent} % of cores`}
          data-faded={(highlight !== undefined && slice.namespace !== highlight) || undefined}
          style={{
            width: `${share(slice) * 100}%`,
            background: tenantColor(slice.namespace),
          }}
        />
      ))}
    </span>
  );
}

function CompactDevice({ entry, highlight, onOpen }: DeviceProps) {
  const { device } = entry;
  const { element, rests, handlers } = useRest();
  return (
    <button
      ref={element}
      {...handlers}
      type="button"
      className={classes.tile}
      data-state={gpuState(device)}
      aria-label={describe(entry)}
      onClick={() => onOpen(entry.uuid)}
    >
      {rests && <DeviceHint uuid={entry.uuid} device={device} target={element} />}
      {device.slices.map((slice, place) => (
        <i
          // biome-ignore lint/suspicious/noArrayIndexKey: a slice has no identity of its own
          key={place}
          data-faded={(highlight !== undefined && slice.namespace !== highlight) || undefined}
          style={{
            height: `${sliceShare(device, slice.memory_mib) * 100}%`,
            background: tenantColor(slice.namespace),
          }}
        />
      ))}
      <span
        className={classes.tileCores}
        style={{
          height: `${Math.min(100, (100 * device.units.used_cores) / Math.max(device.units.cores, 1))}%`,
        }}
      />
    </button>
  );
}

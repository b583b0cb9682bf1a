/** One node with its cards. Large clusters have thousands of cards: a node draws again only when one of its own changed. */
import { Group, Text } from "@mantine/core";
import { memo } from "react";
import type { LiveDevice } from "@/api/types";
import { Icon } from "@/components/icon";
import { gpuState } from "@/lib/gpu-filters";
import { formatMib, formatMibOf, formatShare } from "@/lib/quantity";
import { tenantColor } from "@/lib/tenant-color";
import { CordonMenu } from "./cordon";
import classes from "./gpus.module.css";
import type { Card, NodeGroup } from "./summary";
import { deviceTitle, formatCores, formatCoresShort, sliceShare } from "./units";

export interface NodeCardsProps {
  group: NodeGroup;
  /** What keeps pods off the node. */
  fault: string | undefined;
  compact: boolean;
  /** Slices of other namespaces fade. */
  highlight: string | undefined;
  onOpen: (uuid: string) => void;
}

export const NodeCards = memo(
  function NodeCards({ group, fault, compact, highlight, onOpen }: NodeCardsProps) {
    const CardView = compact ? CompactCard : FullCard;
    return (
      <section className={classes.node} data-compact={compact || undefined} aria-label={`Node ${group.node}`}>
        <NodeHead group={group} fault={fault} compact={compact} />
        <div className={compact ? classes.compactCards : classes.cards}>
          {group.cards.map((card) => (
            <CardView key={card.uuid} card={card} highlight={highlight} onOpen={onOpen} />
          ))}
        </div>
      </section>
    );
  },
  // `onOpen` differs each time and means the same as long as the rest does.
  (before, after) =>
    before.compact === after.compact &&
    before.fault === after.fault &&
    before.highlight === after.highlight &&
    before.group.cards.length === after.group.cards.length &&
    before.group.cards.every((card, place) => card.device === after.group.cards[place]?.device),
);

function NodeHead({ group, fault, compact }: Pick<NodeCardsProps, "group" | "fault" | "compact">) {
  const sum = (of: (device: LiveDevice) => number) =>
    group.cards.reduce((total, card) => total + of(card.device), 0);
  const memory = formatShare(
    sum((device) => device.used_memory_mib),
    sum((device) => device.memory_mib),
  );
  const cores = formatShare(
    sum((device) => device.units.used_cores),
    sum((device) => device.units.cores),
  );
  const counted = [
    ...new Set(group.cards.flatMap(({ device: { units } }) => [units.parts, units.cores_unit])),
  ].filter((unit) => unit !== "slots" && unit !== "%");
  const types = [...new Set(group.cards.map((card) => card.device.type))].join(", ");
  return (
    <Group justify="space-between" gap={6} wrap="nowrap" className={classes.nodeHead}>
      <Text fz="sm" fw={620} truncate title={group.node} maw="75%" style={{ flexShrink: 0 }}>
        {group.node}
        {fault !== undefined && <span className={classes.fault}>{fault}</span>}
      </Text>
      <Group gap={6} wrap="nowrap" miw={0}>
        <Text fz="xs" c="var(--kw-muted)" className="kw-number" truncate>
          {compact ? memory : [types, ...counted, `memory ${memory}`, `cores ${cores}`].join(" · ")}
        </Text>
        {!compact && (
          <CordonMenu
            target={{ node: group.node }}
            name={group.node}
            state={fault === "cordoned" || fault === "draining" ? fault : undefined}
          />
        )}
      </Group>
    </Group>
  );
}

interface CardProps {
  card: Card;
  highlight: string | undefined;
  onOpen: (uuid: string) => void;
}

function describe({ device }: Card): string {
  const state = gpuState(device);
  const cores =
    device.units.cores_unit === "%" ? `${device.used_cores_percent} % of cores` : formatCores(device.units);
  const held = `${formatMib(device.used_memory_mib)} of ${formatMib(device.memory_mib)} and ${cores} held`;
  return `${deviceTitle(device)}, ${device.type}: ${state}, ${held} in ${device.slices.length} ${device.slices.length === 1 ? "slice" : "slices"}`;
}

function FullCard({ card, highlight, onOpen }: CardProps) {
  const { device } = card;
  return (
    <button
      type="button"
      className={classes.card}
      data-state={gpuState(device)}
      aria-label={describe(card)}
      onClick={() => onOpen(card.uuid)}
    >
      <span className={classes.cardHead}>
        <b>{device.index}</b>
        {!device.health && (
          <span className={classes.ill}>
            <Icon name="alert" size={13} /> unhealthy
          </span>
        )}
        <span className="kw-number" title={`${device.units.parts} taken`}>
          {device.used_slots}/{device.slots}
        </span>
      </span>
      <Slices device={device} of="memory_mib" total={device.memory_mib} highlight={highlight} height={16} />
      <Slices
        device={device}
        of="cores_percent"
        total={device.cores_percent}
        highlight={highlight}
        height={6}
      />
      <span className={`${classes.cardFoot} kw-number`}>
        <span>{formatMibOf(device.used_memory_mib, device.memory_mib)}</span>
        <span title={formatCores(device.units)}>{formatCoresShort(device.units)}</span>
      </span>
    </button>
  );
}

interface SlicesProps {
  device: LiveDevice;
  of: "memory_mib" | "cores_percent";
  total: number;
  highlight: string | undefined;
  height: number;
}

function Slices({ device, of, total, highlight, height }: SlicesProps) {
  const held = device.slices.reduce((sum, slice) => sum + slice[of], 0);
  const scale = Math.max(total, held, 1);
  return (
    <span className={classes.bar} style={{ height }}>
      {device.slices.map((slice, place) => (
        <i
          // A slice has no identity of its own; its place is as good as any.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          key={place}
          title={`${slice.workload ?? "occupied"}: ${formatMib(slice.memory_mib)}, ${slice.cores_percent} % of cores`}
          data-faded={(highlight !== undefined && slice.namespace !== highlight) || undefined}
          style={{
            width: `${(of === "memory_mib" ? sliceShare(device, slice[of]) : slice[of] / scale) * 100}%`,
            background: tenantColor(slice.namespace),
          }}
        />
      ))}
    </span>
  );
}

function CompactCard({ card, highlight, onOpen }: CardProps) {
  const { device } = card;
  return (
    <button
      type="button"
      className={classes.tile}
      data-state={gpuState(device)}
      aria-label={describe(card)}
      title={describe(card)}
      onClick={() => onOpen(card.uuid)}
    >
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
    </button>
  );
}

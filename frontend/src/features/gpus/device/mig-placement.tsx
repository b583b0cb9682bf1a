/** The MIG instances of a device: its memory slices in a row, each instance over the slices that it takes. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import type { LiveDevice, LiveSlice } from "@/api/types";
import { tenantColor } from "@/lib/tenant-color";
import classes from "./mig-placement.module.css";

type MigInstance = NonNullable<LiveSlice["mig"]>[number];

export interface Placed extends MigInstance {
  slice: LiveSlice;
}

/** The instances of a device in the order of their places. */
export function migInstances(slices: readonly LiveSlice[]): Placed[] {
  return slices
    .flatMap((slice) => (slice.mig ?? []).map((instance) => ({ ...instance, slice })))
    .toSorted((a, b) => a.start - b.start);
}

/** The memory slices of a device that no instance takes. */
export function freePlaces(total: number, placed: readonly MigInstance[]): number[] {
  return Array.from({ length: total }, (_, place) => place).filter(
    (place) => !placed.some(({ start, size }) => start <= place && place < start + size),
  );
}

/** "3", or "0 to 3". */
export function placeWords({ start, size }: MigInstance): string {
  const last = start + size - 1;
  return size === 1 ? String(start) : t`${start} to ${last}`;
}

/** Nothing for a device that is not in MIG mode. */
export function MigPlacement({ device }: { device: LiveDevice }) {
  const total = device.mig_places ?? 0;
  if (total === 0) return null;
  const placed = migInstances(device.slices);
  const free = freePlaces(total, placed);
  const label = [
    ...placed.map((instance) => instanceWords(instance)),
    plural(free.length, { one: "# memory slice free", other: "# memory slices free" }),
  ].join("; ");
  return (
    <div>
      <Text fz="sm" fw={550} mb={4}>
        <Trans>MIG instances</Trans>
      </Text>
      <div
        className={classes.places}
        role="img"
        aria-label={label}
        style={{ gridTemplateColumns: `repeat(${total}, minmax(0, 1fr))` }}
      >
        {placed.map((instance) => (
          <div
            key={`${instance.profile}-${instance.start}`}
            className={classes.instance}
            title={instanceWords(instance)}
            style={{
              gridColumn: `${instance.start + 1} / span ${instance.size}`,
              ["--tenant" as string]: tenantColor(instance.slice.namespace),
            }}
          >
            {instance.profile}
          </div>
        ))}
        {free.map((place) => (
          <div
            key={place}
            className={classes.free}
            title={t`Memory slice ${place}: free`}
            style={{ gridColumn: place + 1 }}
          />
        ))}
        {Array.from({ length: total }, (_, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a memory slice is its place
          <span key={`at-${place}`} className={classes.number} style={{ gridColumn: place + 1 }}>
            {place}
          </span>
        ))}
      </div>
    </div>
  );
}

function instanceWords(instance: Placed): string {
  const { profile, slice } = instance;
  const places = placeWords(instance);
  const holder = slice.workload ?? t`in use`;
  return instance.size === 1
    ? t`${profile} on memory slice ${places}: ${holder}`
    : t`${profile} on memory slices ${places}: ${holder}`;
}

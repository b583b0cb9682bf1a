/** The filters of the GPU page as they stand in the URL; they select among the live devices. */
import { parseTexts } from "./texts";

export const GPU_STATES = ["free", "shared", "full", "cordoned", "unhealthy"] as const;
export type GpuState = (typeof GPU_STATES)[number];

export const GPU_VIEWS = ["detailed", "compact", "list"] as const;
export type GpuView = (typeof GPU_VIEWS)[number];

export interface GpuFilters {
  vendor?: string;
  type?: string;
  node?: string;
  namespace?: string;
  state?: GpuState;
  /** Only devices that are held and measured to do nothing. */
  idle?: true;
  /** Compact shows each device as one small square, the list sorts devices by their measured use. */
  view?: GpuView;
  /** The order of the list: the name of a column, "-" before it for the largest first. */
  sort?: string;
  /** The UUID of the device that is opened. */
  device?: string;
}

const TEXT_FILTERS = ["vendor", "type", "node", "namespace", "device", "sort"] as const;

export function parseGpuFilters(search: Record<string, unknown>): GpuFilters {
  const filters: GpuFilters = parseTexts(search, TEXT_FILTERS);
  const state = GPU_STATES.find((known) => known === search.state);
  if (state !== undefined) filters.state = state;
  if (search.idle === true) filters.idle = true;
  const view = GPU_VIEWS.find((known) => known === search.view);
  if (view !== undefined) filters.view = view;
  return filters;
}

/** The part of a device that the filters read. */
export interface FilterableDevice {
  node: string;
  type: string;
  vendor: string;
  health: boolean;
  cordoned: boolean;
  node_unschedulable: boolean;
  slots: number;
  used_slots: number;
  memory_mib: number;
  used_memory_mib: number;
  cores_percent: number;
  used_cores_percent: number;
  slices: readonly { namespace: string | null }[];
}

/** Unhealthy and cordoned, by itself or with its node, before all; full when no slice fits any more; free when no slice is in use. */
export function gpuState(device: FilterableDevice): GpuState {
  if (!device.health) return "unhealthy";
  if (device.cordoned || device.node_unschedulable) return "cordoned";
  if (device.used_slots === 0) return "free";
  const full =
    device.used_slots >= device.slots ||
    device.used_memory_mib >= device.memory_mib ||
    device.used_cores_percent >= device.cores_percent;
  return full ? "full" : "shared";
}

export function matchesGpuFilters(device: FilterableDevice, filters: GpuFilters): boolean {
  const { vendor, type, node, namespace, state } = filters;
  return (
    (vendor === undefined || device.vendor === vendor) &&
    (type === undefined || device.type === type) &&
    (node === undefined || device.node.includes(node)) &&
    (namespace === undefined || device.slices.some((slice) => slice.namespace === namespace)) &&
    (state === undefined || gpuState(device) === state)
  );
}

/** The filters of a list that does not know how busy its devices are. */
export function withoutIdle({ idle: _, ...rest }: GpuFilters): GpuFilters {
  return rest;
}

/** A held device that does less is idle, as the reports count it. */
const IDLE_BELOW_PERCENT = 1;

/** The devices that are held and were measured to do nothing; null where no monitor reports any device. */
export function idleDevices(
  devices: Readonly<Record<string, Pick<FilterableDevice, "used_slots">>>,
  usage: readonly { uuid: string; utilization_percent: number | null }[],
): ReadonlySet<string> | null {
  const measured = usage.filter(({ utilization_percent: busy }) => busy !== null);
  if (measured.length === 0) return null;
  const idle = measured.filter(
    ({ uuid, utilization_percent: busy }) =>
      (busy ?? 0) < IDLE_BELOW_PERCENT && (devices[uuid]?.used_slots ?? 0) > 0,
  );
  return new Set(idle.map(({ uuid }) => uuid));
}

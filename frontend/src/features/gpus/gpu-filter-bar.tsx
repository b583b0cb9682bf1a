/** The filters above the devices; each stands in the URL. */
import { t } from "@lingui/core/macro";
import { SegmentedControl } from "@mantine/core";
import { useMemo } from "react";
import { ChoiceFilter, FilterRow, TextFilter } from "@/components/table/filters";
import { type GpuFilters, type GpuView, parseGpuFilters } from "@/lib/url/gpu-filters";
import { type DeviceEntry, distinct, tenants } from "./summary";

export interface GpuFilterBarProps {
  entries: DeviceEntry[];
  filters: GpuFilters;
  /** Undefined where there is one view alone. */
  view?: GpuView;
  onFilter: (filters: GpuFilters) => void;
}

export function GpuFilterBar({ entries, filters, view, onFilter }: GpuFilterBarProps) {
  const vendors = useMemo(() => distinct(entries, (device) => device.vendor), [entries]);
  const types = useMemo(() => distinct(entries, (device) => device.type), [entries]);
  const namespaces = useMemo(
    () =>
      tenants(entries)
        .flatMap(({ namespace }) => namespace ?? [])
        .sort(),
    [entries],
  );
  const set = (change: Record<string, string | null>) => onFilter(parseGpuFilters({ ...filters, ...change }));
  const { vendor, type, node, namespace, state, idle } = filters;
  const filtered = [vendor, type, node, namespace, state, idle].some((value) => value !== undefined);
  return (
    <FilterRow
      onClear={
        filtered ? () => onFilter(filters.view === undefined ? {} : { view: filters.view }) : undefined
      }
      aside={
        view !== undefined && (
          <SegmentedControl
            aria-label={t`View`}
            size="xs"
            data={[
              { value: "detailed", label: t`Detailed` },
              { value: "compact", label: t`Compact` },
              { value: "list", label: t`List` },
            ]}
            value={view}
            onChange={(chosen) => set({ view: chosen })}
          />
        )
      }
    >
      <TextFilter search label={t`Search nodes`} value={node} onChange={(name) => set({ node: name })} />
      <ChoiceFilter
        label={t`Vendor`}
        choices={vendors}
        value={vendor}
        onChange={(name) => set({ vendor: name })}
      />
      <ChoiceFilter label={t`Type`} choices={types} value={type} onChange={(name) => set({ type: name })} />
      <ChoiceFilter
        label={t`Namespace`}
        choices={namespaces}
        value={namespace}
        onChange={(name) => set({ namespace: name })}
      />
    </FilterRow>
  );
}

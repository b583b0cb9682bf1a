/** The filters above the devices; each stands in the URL. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useMemo } from "react";
import { Icon } from "@/components/icon";
import { type GpuFilters, parseGpuFilters } from "@/lib/url/gpu-filters";
import { type DeviceEntry, distinct, tenants } from "./summary";

export interface GpuFilterBarProps {
  entries: DeviceEntry[];
  filters: GpuFilters;
  /** Undefined where there is one view alone. */
  view?: "compact" | "detailed";
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
  const { vendor, type, node, namespace, state } = filters;
  const filtered = [vendor, type, node, namespace, state].some((value) => value !== undefined);
  return (
    <Group gap="xs" mb="sm">
      <TextInput
        type="search"
        aria-label={t`Search nodes`}
        placeholder={t`Search nodes  ( / )`}
        size="xs"
        w={190}
        leftSection={<Icon name="search" size={14} />}
        value={node ?? ""}
        onChange={(event) => set({ node: event.currentTarget.value })}
      />
      <Choice label={t`Vendor`} names={vendors} value={vendor} onChoose={(name) => set({ vendor: name })} />
      <Choice label={t`Type`} names={types} value={type} onChoose={(name) => set({ type: name })} />
      <Choice
        label={t`Namespace`}
        names={namespaces}
        value={namespace}
        onChoose={(name) => set({ namespace: name })}
      />
      {filtered && (
        <Button
          variant="subtle"
          size="xs"
          leftSection={<Icon name="close" size={13} />}
          onClick={() => onFilter(filters.view === undefined ? {} : { view: filters.view })}
        >
          <Trans>Clear</Trans>
        </Button>
      )}
      {view !== undefined && (
        <SegmentedControl
          aria-label={t`View`}
          size="xs"
          ml="auto"
          data={[
            { value: "detailed", label: t`Detailed` },
            { value: "compact", label: t`Compact` },
          ]}
          value={view}
          onChange={(chosen) => set({ view: chosen })}
        />
      )}
    </Group>
  );
}

interface ChoiceProps {
  label: string;
  names: string[];
  value: string | undefined;
  onChoose: (name: string | null) => void;
}

function Choice({ label, names, value, onChoose }: ChoiceProps) {
  const data = value === undefined || names.includes(value) ? names : [value, ...names];
  return (
    <Select
      aria-label={label}
      placeholder={label}
      size="xs"
      w={150}
      clearable
      searchable
      limit={100}
      data={data}
      value={value ?? null}
      onChange={onChoose}
    />
  );
}

/** Every device of every node, and who holds which slice of it. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Box, Button, Group, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { deviceUsageQuery } from "@/api/devices";
import { nodesQuery } from "@/api/nodes";
import type { LiveDevice } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { type GpuFilters, idleDevices, matchesGpuFilters } from "@/lib/url/gpu-filters";
import { cordonState } from "@/lib/words/node-state";
import { DeviceDrawer } from "./device/device-drawer";
import { DriftPanel } from "./drift-panel";
import { FragmentationPanel } from "./fragmentation-panel";
import { GpuFilterBar } from "./gpu-filter-bar";
import { HeadroomTable } from "./headroom-table";
import { DeviceList } from "./list/device-list";
import { listedDevices } from "./list/device-order";
import { NodeGrid } from "./node-grid";
import { StateCounts } from "./state-counts";
import { type DeviceEntry, groupByNode, nodeFaults } from "./summary";
import { TenantLegend } from "./tenant-legend";

export interface GpusPageProps {
  filters: GpuFilters;
  onFilter: (filters: GpuFilters) => void;
  /** The charts of all devices. */
  history: ReactNode;
}

/** From this many devices on, the small view is the first to show. */
const MANY_DEVICES = 96;

export function GpusPage({ filters, onFilter, history }: GpusPageProps) {
  const devices = useLive((live) => live.data?.devices);
  return (
    <>
      <PageHeader title={t`GPUs`} />
      {devices === undefined ? (
        <Skeleton height={400} />
      ) : (
        <Devices devices={devices} filters={filters} onFilter={onFilter} history={history} />
      )}
    </>
  );
}

function Devices({
  devices,
  filters,
  onFilter,
  history,
}: GpusPageProps & { devices: Record<string, LiveDevice> }) {
  const all = useMemo(
    () => Object.entries(devices).map(([uuid, device]): DeviceEntry => ({ uuid, device })),
    [devices],
  );
  const cluster = useCluster();
  const usage = useQuery(deviceUsageQuery(cluster)).data?.results;
  const idle = useMemo(() => idleDevices(devices, usage ?? []), [devices, usage]);
  const shown = useMemo(
    () =>
      all.filter(
        ({ uuid, device }) =>
          matchesGpuFilters(device, filters) && (filters.idle !== true || idle?.has(uuid) === true),
      ),
    [all, filters, idle],
  );
  const groups = useMemo(() => groupByNode(shown), [shown]);
  const nodes = useQuery(nodesQuery(cluster));
  const faults = useMemo(() => nodeFaults(nodes.data ?? []), [nodes.data]);
  const cordons = useMemo(
    () => new Map(nodes.data?.map((node) => [node.name, cordonState(node)])),
    [nodes.data],
  );
  const view = filters.view ?? (all.length > MANY_DEVICES ? "compact" : "detailed");
  const opened = filters.device === undefined ? undefined : devices[filters.device];

  if (all.length === 0) {
    return (
      <Panel>
        <EmptyState icon="gpus" title={t`No GPUs are registered`}>
          <Trans>
            Devices appear here when nodes carry HAMi's register annotations. Without devices, only quota
            decides.
          </Trans>
        </EmptyState>
      </Panel>
    );
  }
  return (
    <>
      <StateCounts entries={all} idle={idle} filters={filters} onFilter={onFilter} />
      <GpuFilterBar entries={all} filters={filters} view={view} onFilter={onFilter} />
      <TenantLegend
        entries={all}
        chosen={filters.namespace}
        onChoose={(namespace) => {
          const { namespace: _, ...others } = filters;
          onFilter(namespace === undefined ? others : { ...others, namespace });
        }}
      />
      {groups.length === 0 ? (
        <Panel>
          <EmptyState
            icon="filter"
            title={t`No device matches these filters`}
            action={
              <Button variant="light" size="xs" mt="xs" onClick={() => onFilter({ view })}>
                <Trans>Clear all filters</Trans>
              </Button>
            }
          />
        </Panel>
      ) : view === "list" ? (
        <DeviceList
          rows={listedDevices(cluster, shown, usage ?? [])}
          sort={filters.sort}
          onSort={(sort) => {
            const { sort: _, ...others } = filters;
            onFilter(sort === undefined ? others : { ...others, sort });
          }}
          onOpen={(device) => onFilter({ ...filters, device })}
        />
      ) : (
        <NodeGrid
          groups={groups}
          faults={faults}
          cordons={cordons}
          compact={view === "compact"}
          highlight={filters.namespace}
          onOpen={(device) => onFilter({ ...filters, device })}
        />
      )}
      <Box mt="lg">{history}</Box>
      <Group mt="md">
        <DriftPanel />
        <FragmentationPanel />
        <HeadroomTable entries={shown} />
      </Group>
      <DeviceDrawer
        uuid={filters.device}
        device={opened}
        onClose={() => {
          const { device: _, ...others } = filters;
          onFilter(others);
        }}
      />
    </>
  );
}

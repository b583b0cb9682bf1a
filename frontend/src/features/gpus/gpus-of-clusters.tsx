/** The devices of several clusters. What is drawn or computed of one cluster's devices is on the page of that cluster. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { useCluster, useClusterOf } from "@/api/cluster";
import { devicesQuery } from "@/api/devices";
import { nodesQuery } from "@/api/nodes";
import { sessionQuery } from "@/api/session";
import { ClusterLinks } from "@/components/clusters/cluster-links";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { DataTable } from "@/components/table/data-table";
import { chosenClusters } from "@/lib/url/clusters";
import { type GpuFilters, matchesGpuFilters, withoutIdle } from "@/lib/url/gpu-filters";
import { DriftPanel } from "./drift-panel";
import { GpuFilterBar } from "./gpu-filter-bar";
import { HeadroomTable } from "./headroom-table";
import { DEVICE_COLUMNS } from "./list/device-columns";
import { StateCounts } from "./state-counts";
import { type ClusterDevice, clusterDevices } from "./summary";

export interface GpusOfClustersProps {
  filters: GpuFilters;
  onFilter: (filters: GpuFilters) => void;
}

const clusterOfRow = ({ cluster }: ClusterDevice) => cluster;

export function GpusOfClusters({ filters: asked, onFilter }: GpusOfClustersProps) {
  // The use of devices is read for one cluster at a time, so they cannot be told apart by it here.
  const filters = useMemo(() => withoutIdle(asked), [asked]);
  const cluster = useCluster();
  const { data: session } = useSuspenseQuery(sessionQuery());
  const devices = useQuery(devicesQuery(cluster));
  const nodes = useQuery(nodesQuery(cluster));
  const all = useMemo(() => clusterDevices(devices.data ?? [], nodes.data ?? []), [devices.data, nodes.data]);
  const shown = useMemo(() => all.filter(({ device }) => matchesGpuFilters(device, filters)), [all, filters]);
  const names = chosenClusters(
    cluster,
    session.clusters.map(({ name }) => name),
  );
  return (
    <>
      <PageHeader title={t`GPUs`} />
      <StateCounts entries={all} filters={filters} onFilter={onFilter} />
      <GpuFilterBar entries={all} filters={filters} onFilter={onFilter} />
      {devices.error !== null && devices.data === undefined ? (
        <QueryError title={t`This list cannot be shown`} query={devices} />
      ) : (
        <DeviceTable rows={shown} loading={devices.isPending} any={all.length > 0} onFilter={onFilter} />
      )}
      <Group mt="md">
        <DriftPanel />
        <HeadroomTable entries={shown} />
        <Panel title={t`Fragmentation`} w="100%">
          <Trans>Fragmentation, charts and the view by node show one cluster:</Trans>
          <ClusterLinks names={names} />
        </Panel>
      </Group>
    </>
  );
}

interface DeviceTableProps {
  rows: ClusterDevice[];
  loading: boolean;
  /** Whether there are devices that the filters leave out. */
  any: boolean;
  onFilter: (filters: GpuFilters) => void;
}

function DeviceTable({ rows, loading, any, onFilter }: DeviceTableProps) {
  const navigate = useNavigate();
  return (
    <Panel flush>
      <DataTable
        label={t`Devices`}
        columns={DEVICE_COLUMNS}
        rows={rows}
        rowKey={({ cluster, device, uuid }) => `${cluster}/${device.node}/${uuid}`}
        clusterOf={useClusterOf(clusterOfRow)}
        loading={loading}
        onOpen={({ cluster, device, uuid }) =>
          void navigate({ to: "/gpus", search: { cluster, node: device.node, device: uuid } })
        }
        height="max(420px, calc(100dvh - 380px))"
        empty={
          any ? (
            <EmptyState
              icon="filter"
              title={t`No device matches these filters`}
              action={
                <Button variant="light" size="xs" mt="xs" onClick={() => onFilter({})}>
                  <Trans>Clear all filters</Trans>
                </Button>
              }
            />
          ) : (
            <EmptyState icon="gpus" title={t`No GPUs are registered`}>
              <Trans>
                Devices appear here when nodes carry HAMi's register annotations. Without devices, only quota
                decides.
              </Trans>
            </EmptyState>
          )
        }
      />
    </Panel>
  );
}

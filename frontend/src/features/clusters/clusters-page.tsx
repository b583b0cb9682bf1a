/** All clusters at a glance: who decides there, whether each is well, who waits, and what is short. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import { clusterOverviewsQuery } from "@/api/overview";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { DataTable } from "@/components/table/data-table";
import { CLUSTER_COLUMNS } from "./cluster-columns";

export function ClustersPage() {
  const navigate = useNavigate();
  const lines = useQuery(clusterOverviewsQuery(useCluster()));
  return (
    <>
      <PageHeader title={t`Clusters`} />
      {lines.error !== null && lines.data === undefined ? (
        <QueryError title={t`The clusters cannot be shown`} query={lines} />
      ) : (
        <Panel flush>
          <DataTable
            label={t`Clusters`}
            columns={CLUSTER_COLUMNS}
            rows={lines.data ?? []}
            rowKey={(line) => line.cluster}
            loading={lines.isPending}
            onOpen={({ cluster }) => void navigate({ to: "/", search: { cluster } })}
            height="max(420px, calc(100dvh - 220px))"
            empty={
              <EmptyState icon="nodes" title={t`You have no access to any cluster`}>
                <Trans>Ask a cluster admin for a role.</Trans>
              </EmptyState>
            }
          />
        </Panel>
      )}
    </>
  );
}

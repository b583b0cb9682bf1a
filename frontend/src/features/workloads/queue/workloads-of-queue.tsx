/** The workloads of one LocalQueue, the newest first. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import { workloadsQuery } from "@/api/workloads";
import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { PagedTable } from "@/components/table/paged-table";
import { WORKLOAD_COLUMNS } from "../list/workload-columns";

const COLUMNS = WORKLOAD_COLUMNS.filter((column) => column.id !== "namespace" && column.id !== "queue");

export function WorkloadsOfQueue({ namespace, queue }: { namespace: string; queue: string }) {
  const navigate = useNavigate();
  const list = useInfiniteQuery(workloadsQuery(useCluster(), { namespace, local_queue: queue }));
  return (
    <PagedTable
      title={t`Workloads`}
      aside={
        <TextLink to="/workloads" search={{ namespace, local_queue: queue }} fz="sm">
          <Trans>Filter these workloads</Trans>
        </TextLink>
      }
      label={t`Workloads of ${namespace}/${queue}`}
      list={list}
      columns={COLUMNS}
      rowKey={(row) => row.uid}
      onOpen={({ name }) => void navigate({ to: "/workloads/$namespace/$name", params: { namespace, name } })}
      height="440px"
      empty={<EmptyState icon="workloads" title={t`No workload was submitted to it`} />}
    />
  );
}

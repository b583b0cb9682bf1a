/** The pods on a node, of workloads that the reader may see. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import { nodePodsQuery } from "@/api/nodes";
import type { NodePod } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { WorkloadLink } from "@/components/object-links";
import { ageColumn, textColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { PagedTable } from "@/components/table/paged-table";
import { requestWords } from "@/lib/words/requests";

const COLUMNS: DataColumn<NodePod>[] = [
  {
    id: "pod",
    header: () => t`Pod`,
    cell: ({ row: { original } }) => (
      <WorkloadLink namespace={original.namespace} name={original.workload} inRow>
        <MiddleEllipsis text={original.name} />
      </WorkloadLink>
    ),
  },
  textColumn(
    "namespace",
    () => t`Namespace`,
    (pod) => pod.namespace,
    { width: "18%", hideBelow: 760 },
  ),
  {
    id: "phase",
    header: () => t`Phase`,
    meta: { width: "112px" },
    cell: ({ row: { original } }) => (original.terminating ? t`Terminating` : original.phase),
  },
  textColumn(
    "devices",
    () => t`GPUs`,
    (pod) => requestWords([{ count: 1, requests: pod.requests }]).devices || "–",
    { width: "18%", hideBelow: 560, below: 1 },
  ),
  textColumn(
    "requests",
    () => t`CPU and memory`,
    (pod) => requestWords([{ count: 1, requests: pod.requests }]).others || "–",
    { width: "18%", hideBelow: 560, below: 2 },
  ),
  ageColumn((pod) => pod.started_at, { align: "right", hideBelow: 560 }),
];

export function NodePods({ node }: { node: string }) {
  const navigate = useNavigate();
  const pods = useInfiniteQuery(nodePodsQuery(useCluster(), node));
  return (
    <PagedTable
      title={t`Pods`}
      label={t`The pods of this node`}
      list={pods}
      columns={COLUMNS}
      rowKey={(pod) => `${pod.namespace}/${pod.name}`}
      onOpen={({ namespace, workload: name }) =>
        void navigate({ to: "/workloads/$namespace/$name", params: { namespace, name } })
      }
      height="420px"
      empty={
        <EmptyState icon="workloads" title={t`None of your pods runs here`}>
          <Trans>
            Pods without a workload and pods in namespaces that you cannot see are counted above but not
            listed.
          </Trans>
        </EmptyState>
      }
    />
  );
}

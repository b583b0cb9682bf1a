/** The nodes that a flavor reaches. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useCluster } from "@/api/cluster";
import { nodesQuery } from "@/api/nodes";
import { EmptyState } from "@/components/empty-state";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { DataTable } from "@/components/table/data-table";
import { NODE_COLUMNS } from "./node-columns";
import { nodeRow, sortNodes } from "./summary";

/** Beside the facts of the flavor: their titles need a larger share than in the list of all nodes. */
const WIDER = new Set(["memory", "devices"]);
const COLUMNS = NODE_COLUMNS.filter((column) => column.id !== "flavors" && column.id !== "age").map(
  (column) => (WIDER.has(column.id ?? "") ? { ...column, meta: { ...column.meta, width: "18%" } } : column),
);

export function NodesOfFlavor({ flavor }: { flavor: string }) {
  const navigate = useNavigate();
  const nodes = useQuery(nodesQuery(useCluster()));
  const [sort, setSort] = useState<string>();
  const rows = useMemo(
    () => sortNodes(nodes.data?.filter((node) => node.flavors.includes(flavor)).map(nodeRow) ?? [], sort),
    [nodes.data, flavor, sort],
  );
  return (
    <Panel title={t`Its nodes`} flush>
      {nodes.error !== null && nodes.data === undefined ? (
        <QueryError title={t`The nodes cannot be shown`} query={nodes} />
      ) : (
        <DataTable
          label={t`Nodes of flavor ${flavor}`}
          columns={COLUMNS}
          rows={rows}
          rowKey={({ node }) => node.name}
          loading={nodes.isPending}
          onOpen={({ node }) => void navigate({ to: "/nodes/$name", params: { name: node.name } })}
          sort={sort}
          onSort={setSort}
          height="520px"
          empty={
            <EmptyState icon="nodes" title={t`No node matches this flavor`}>
              <Trans>
                No node has all labels of this flavor: workloads that get the flavor wait for one.
              </Trans>
            </EmptyState>
          }
        />
      )}
    </Panel>
  );
}

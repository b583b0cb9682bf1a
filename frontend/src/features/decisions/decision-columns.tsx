/** The columns of the decision log. */
import { t } from "@lingui/core/macro";
import type { Decision } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { DecisionWhy } from "@/components/decision-why";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { WorkloadLink } from "@/components/object-links";
import { clusterQueueColumn, timeColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { decisionLook } from "@/lib/words/decision-action";

export const DECISION_COLUMNS: DataColumn<Decision>[] = [
  timeColumn((decision) => decision.decided_at),
  {
    id: "decision",
    header: () => t`Decision`,
    meta: { width: "128px", hideBelow: 560, below: 1 },
    cell: ({ row: { original } }) => <BadgeDot {...decisionLook(original.action)} />,
  },
  {
    id: "workload",
    header: () => t`Workload`,
    cell: ({ row: { original } }) => (
      <WorkloadLink namespace={original.namespace} name={original.workload_name} inRow>
        <MiddleEllipsis text={`${original.namespace}/${original.workload_name}`} />
      </WorkloadLink>
    ),
  },
  clusterQueueColumn({ hideBelow: 1000, width: "15%" }),
  {
    id: "why",
    header: () => t`Why`,
    meta: { hideBelow: 760, width: "38%", below: 2 },
    cell: ({ row: { original } }) => <DecisionWhy decision={original} />,
  },
  {
    id: "cycle",
    header: () => t`Cycle`,
    meta: { hideBelow: 1240, width: "92px", align: "right" },
    cell: ({ row: { original } }) => (
      <span title={t`Cycle ${original.cycle} of leader epoch ${original.epoch}`}>{original.cycle}</span>
    ),
  },
];

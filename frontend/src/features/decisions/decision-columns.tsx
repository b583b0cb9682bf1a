/** The columns of the decision log. */
import { Tooltip } from "@mantine/core";
import type { Decision } from "@/api/types";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import type { DataColumn } from "@/components/data-table";
import { TextLink } from "@/components/link";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { decisionLook } from "@/lib/decision-action";

export const DECISION_COLUMNS: DataColumn<Decision>[] = [
  {
    id: "when",
    header: "Age",
    meta: { width: "56px" },
    cell: ({ row: { original } }) => <Ago time={original.decided_at} short />,
  },
  {
    id: "decision",
    header: "Decision",
    meta: { width: "128px" },
    cell: ({ row: { original } }) => <BadgeDot {...decisionLook(original.action)} />,
  },
  {
    id: "workload",
    header: "Workload",
    cell: ({ row: { original } }) => (
      <TextLink
        to="/workloads/$namespace/$name"
        params={{ namespace: original.namespace, name: original.workload_name }}
        fz="inherit"
        tabIndex={-1}
      >
        <MiddleEllipsis text={`${original.namespace}/${original.workload_name}`} />
      </TextLink>
    ),
  },
  {
    id: "queue",
    header: "ClusterQueue",
    meta: { hideBelow: 1000, width: "11%" },
    cell: ({ row: { original } }) =>
      original.cluster_queue === "" ? (
        "–"
      ) : (
        <TextLink to="/queues/$name" params={{ name: original.cluster_queue }} fz="inherit" tabIndex={-1}>
          <MiddleEllipsis text={original.cluster_queue} />
        </TextLink>
      ),
  },
  {
    id: "why",
    header: "Why",
    meta: { hideBelow: 760, width: "44%" },
    cell: ({ row: { original } }) => (
      <Tooltip
        label={original.message}
        disabled={original.message === ""}
        multiline
        maw={480}
        openDelay={400}
      >
        <span>{original.message || original.reason}</span>
      </Tooltip>
    ),
  },
  {
    id: "cycle",
    header: "Cycle",
    meta: { hideBelow: 1240, width: "92px", align: "right" },
    cell: ({ row: { original } }) => (
      <span title={`Cycle ${original.cycle} of leader epoch ${original.epoch}`}>{original.cycle}</span>
    ),
  },
];

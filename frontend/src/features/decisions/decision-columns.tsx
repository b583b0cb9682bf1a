/** The columns of the decision log. */
import { Tooltip } from "@mantine/core";
import type { Decision } from "@/api/types";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import type { DataColumn } from "@/components/data-table";
import { TextLink } from "@/components/link";
import { decisionLook } from "@/lib/decision-action";

export const DECISION_COLUMNS: DataColumn<Decision>[] = [
  {
    id: "when",
    header: "When",
    meta: { width: "108px" },
    cell: ({ row: { original } }) => <Ago time={original.decided_at} />,
  },
  {
    id: "decision",
    header: "Decision",
    meta: { width: "136px" },
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
        {original.namespace}/{original.workload_name}
      </TextLink>
    ),
  },
  {
    id: "queue",
    header: "ClusterQueue",
    meta: { hideBelow: 1000, width: "11%" },
    cell: ({ row: { original } }) => original.cluster_queue || "–",
  },
  {
    id: "why",
    header: "Why",
    meta: { hideBelow: 760, width: "36%" },
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
      <span title={`epoch ${original.epoch}, cycle ${original.cycle}`}>
        {original.epoch}.{original.cycle}
      </span>
    ),
  },
];

/** The columns of the workload list. */
import { Tooltip } from "@mantine/core";
import type { Workload } from "@/api/types";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import type { DataColumn } from "@/components/data-table";
import { TextLink } from "@/components/link";
import { statusLook } from "@/lib/workload-status";
import { summarizeRequests } from "./requests";
import classes from "./workloads.module.css";

export const WORKLOAD_COLUMNS: DataColumn<Workload>[] = [
  {
    id: "name",
    header: "Workload",
    cell: ({ row: { original } }) => (
      <div className={classes.two}>
        <TextLink
          to="/workloads/$namespace/$name"
          params={{ namespace: original.namespace, name: original.name }}
          fz="inherit"
          fw={550}
          tabIndex={-1}
        >
          {original.name}
        </TextLink>
        <span className={classes.second}>
          {original.namespace}
          {original.status === "Pending" && <span className={classes.narrowOnly}> · {original.reason}</span>}
        </span>
      </div>
    ),
  },
  {
    id: "status",
    header: "Status",
    meta: { width: "134px" },
    cell: ({ row: { original } }) => <WorkloadStatusBadge workload={original} />,
  },
  {
    id: "queue",
    header: "Queue",
    meta: { hideBelow: 760, width: "12%" },
    cell: ({ row: { original } }) => (
      <div className={classes.two}>
        <span>{original.cluster_queue || "–"}</span>
        <span className={classes.second}>{original.queue_name || "no LocalQueue"}</span>
      </div>
    ),
  },
  {
    id: "requests",
    header: "Asks for",
    meta: { hideBelow: 1000, width: "16%" },
    cell: ({ row: { original } }) => {
      const [first = "–", second] = summarizeRequests(original.pod_sets);
      return (
        <div className={classes.two} title={[first, second].filter(Boolean).join("\n")}>
          <span>{first}</span>
          {second !== undefined && <span className={classes.second}>{second}</span>}
        </div>
      );
    },
  },
  {
    id: "priority",
    header: "Priority",
    meta: { hideBelow: 1000, width: "112px" },
    cell: ({ row: { original } }) => (
      <div className={classes.two}>
        <span className="kw-number">{original.priority}</span>
        {original.priority_class !== "" && <span className={classes.second}>{original.priority_class}</span>}
      </div>
    ),
  },
  {
    id: "why",
    header: "Why",
    meta: { hideBelow: 760, width: "19%" },
    cell: ({ row: { original } }) => <Why workload={original} />,
  },
  {
    id: "age",
    header: "Created",
    meta: { hideBelow: 560, width: "104px", align: "right" },
    cell: ({ row: { original } }) => <Ago time={original.created_at} />,
  },
];

export function WorkloadStatusBadge({ workload }: { workload: Pick<Workload, "status" | "active"> }) {
  const { label, color, meaning } = statusLook(workload.status);
  const held = !workload.active && workload.status !== "Finished";
  return <BadgeDot label={held ? `${label}, on hold` : label} color={color} hint={meaning} />;
}

function Why({ workload }: { workload: Workload }) {
  if (workload.status === "Admitted" || workload.message === "") return workload.reason;
  return (
    <Tooltip label={workload.message} multiline maw={420} openDelay={400}>
      <div className={classes.two}>
        <span>{workload.reason}</span>
        <span className={classes.second}>{workload.message}</span>
      </div>
    </Tooltip>
  );
}

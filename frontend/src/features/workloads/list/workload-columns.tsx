/** The columns of the workload list. */
import { Tooltip } from "@mantine/core";
import type { Workload } from "@/api/types";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import type { DataColumn } from "@/components/data-table";
import { TextLink } from "@/components/link";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { statusLook } from "@/lib/workload-status";
import { summarizeRequests } from "./requests";

export const WORKLOAD_COLUMNS: DataColumn<Workload>[] = [
  {
    id: "name",
    header: "Workload",
    cell: ({ row: { original } }) => (
      <TextLink
        to="/workloads/$namespace/$name"
        params={{ namespace: original.namespace, name: original.name }}
        fz="inherit"
        fw={550}
        tabIndex={-1}
      >
        <MiddleEllipsis text={original.name} />
      </TextLink>
    ),
  },
  {
    id: "namespace",
    header: "Namespace",
    meta: { hideBelow: 1000, width: "10%" },
    cell: ({ row: { original } }) => <MiddleEllipsis text={original.namespace} />,
  },
  {
    id: "status",
    header: "Status",
    meta: { width: "124px" },
    cell: ({ row: { original } }) => <WorkloadStatusBadge workload={original} />,
  },
  {
    id: "queue",
    header: "ClusterQueue",
    meta: { hideBelow: 760, width: "13%" },
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
    id: "requests",
    header: "Asks for",
    meta: { hideBelow: 1000, width: "26%" },
    cell: ({ row: { original } }) => {
      const text = summarizeRequests(original.pod_sets).join(" · ");
      return <span title={text}>{text || "–"}</span>;
    },
  },
  {
    id: "priority",
    header: "Priority",
    meta: { hideBelow: 1000, width: "76px", align: "right" },
    cell: ({ row: { original } }) => <span title={original.priority_class}>{original.priority}</span>,
  },
  {
    id: "why",
    header: "Why",
    meta: { hideBelow: 760, width: "14%" },
    cell: ({ row: { original } }) => <Why workload={original} />,
  },
  {
    id: "age",
    header: "Age",
    meta: { hideBelow: 560, width: "56px", align: "right" },
    cell: ({ row: { original } }) => <Ago time={original.created_at} short />,
  },
];

export function WorkloadStatusBadge({ workload }: { workload: Pick<Workload, "status" | "active"> }) {
  const { label, color, meaning } = statusLook(workload.status);
  const held = !workload.active && workload.status !== "Finished";
  return <BadgeDot label={held ? `${label}, on hold` : label} color={color} hint={meaning} />;
}

/** Only what the badge does not say already. */
function Why({ workload }: { workload: Workload }) {
  const { status, reason, message } = workload;
  if (status === "Admitted" || reason === status || reason === "") return null;
  return (
    <Tooltip label={message} disabled={message === ""} multiline maw={420} openDelay={400}>
      <span>{reason}</span>
    </Tooltip>
  );
}

/** The columns of the workload list. */
import { t } from "@lingui/core/macro";
import { Tooltip } from "@mantine/core";
import type { Workload } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { WorkloadLink } from "@/components/object-links";
import { ageColumn, clusterQueueColumn, textColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { statusLook } from "@/lib/words/workload-status";
import { summarizeRequests } from "./requests";

export const WORKLOAD_COLUMNS: DataColumn<Workload>[] = [
  {
    id: "name",
    header: () => t`Workload`,
    meta: { sort: "name" },
    cell: ({ row: { original } }) => (
      <WorkloadLink namespace={original.namespace} name={original.name} fw={550} inRow />
    ),
  },
  textColumn(
    "namespace",
    () => t`Namespace`,
    (workload) => workload.namespace,
    {
      hideBelow: 1000,
      width: "10%",
      sort: "namespace",
    },
  ),
  {
    id: "status",
    header: () => t`Status`,
    meta: { width: "124px", sort: "status" },
    cell: ({ row: { original } }) => <WorkloadStatusBadge workload={original} />,
  },
  clusterQueueColumn({ hideBelow: 760, width: "13%" }),
  {
    id: "requests",
    header: () => t`Asks for`,
    meta: { hideBelow: 1000, width: "26%" },
    cell: ({ row: { original } }) => {
      const text = summarizeRequests(original.pod_sets).join(" · ");
      return <span title={text}>{text || "–"}</span>;
    },
  },
  {
    id: "priority",
    header: () => t`Priority`,
    meta: { hideBelow: 1000, width: "84px", align: "right", sort: "priority" },
    cell: ({ row: { original } }) => <span title={original.priority_class}>{original.priority}</span>,
  },
  {
    id: "why",
    header: () => t`Why`,
    meta: { hideBelow: 760, width: "14%" },
    cell: ({ row: { original } }) => <Why workload={original} />,
  },
  ageColumn((workload) => workload.created_at, { hideBelow: 560, align: "right", sort: "id" }),
];

export function WorkloadStatusBadge({ workload }: { workload: Pick<Workload, "status" | "active"> }) {
  const { label, color, meaning } = statusLook(workload.status);
  const held = !workload.active && workload.status !== "Finished";
  return <BadgeDot label={held ? t`${label}, on hold` : label} color={color} hint={meaning} />;
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

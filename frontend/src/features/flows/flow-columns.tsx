/** The columns of the list of flows. */
import { t } from "@lingui/core/macro";
import type { JobFlow } from "@/api/jobs/job-flows";
import { BadgeDot } from "@/components/badge-dot";
import { NameLink, nameLook } from "@/components/link";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { ageColumn, textColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { flowLook, queuesOf, stepsText, submittedAt } from "./flow-words";

export const FLOW_COLUMNS: DataColumn<JobFlow>[] = [
  {
    id: "flow",
    header: () => t`Flow`,
    cell: ({ row: { original } }) => (
      <NameLink
        to="/flows/$namespace/$name"
        params={{ namespace: original.namespace, name: original.name }}
        className={nameLook(false)}
        tabIndex={-1}
      >
        <MiddleEllipsis text={`${original.namespace}/${original.name}`} />
      </NameLink>
    ),
  },
  {
    id: "state",
    header: () => t`State`,
    meta: { width: "130px" },
    cell: ({ row: { original } }) => <BadgeDot {...flowLook(original.phase)} />,
  },
  textColumn(
    "queue",
    () => t`LocalQueue`,
    (flow) => queuesOf(flow).join(", "),
    { width: "18%", hideBelow: 760, below: 2 },
  ),
  textColumn("steps", () => t`Jobs`, stepsText, { width: "32%", hideBelow: 760, below: 1 }),
  ageColumn(submittedAt, { hideBelow: 560 }),
];

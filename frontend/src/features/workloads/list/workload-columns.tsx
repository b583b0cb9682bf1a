/** The columns of the workload list. */
import { t } from "@lingui/core/macro";
import type { Workload } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { WorkloadLink } from "@/components/object-links";
import { ageColumn, clusterQueueColumn, textColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { useNow } from "@/lib/clock";
import { type AddedColumn, OWN_COLUMNS, type OwnColumn } from "@/lib/list/columns";
import type { WorkloadView } from "@/lib/url/workload-filters";
import { shortReason } from "@/lib/words/pending-reason";
import { summarizeRequests } from "@/lib/words/requests";
import { stateLook } from "@/lib/words/workload-state";
import { expectedShort, expectedWords } from "../waiting/expected-start";

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
    cell: ({ row: { original } }) => <WorkloadStateBadge workload={original} />,
  },
  clusterQueueColumn({ hideBelow: 760, below: 2, width: "10%", sort: "cluster_queue" }),
  {
    id: "requests",
    header: () => t`Requests`,
    meta: { hideBelow: 1240, width: "15%" },
    cell: ({ row: { original } }) => {
      const words = summarizeRequests(original.pod_sets).join(" · ");
      return <span title={words}>{words || "–"}</span>;
    },
  },
  {
    id: "priority",
    header: () => t`Priority`,
    meta: { hideBelow: 1240, width: "84px", align: "right", sort: "priority" },
    cell: ({ row: { original } }) => <span title={original.priority_class}>{original.priority}</span>,
  },
  {
    id: "why",
    header: () => t`Why`,
    meta: { hideBelow: 760, below: 1, width: "11%", sort: "reason" },
    cell: ({ row: { original } }) => <Why workload={original} />,
  },
  {
    id: "start",
    header: () => t`Starts in`,
    meta: { hideBelow: 1100, width: "92px" },
    cell: ({ row: { original } }) => <ExpectedStart workload={original} />,
  },
  ageColumn((workload) => workload.created_at, { hideBelow: 560, below: 3, align: "right", sort: "id" }),
];

/** The name cannot be left out: by it a row is opened. */
export const CHOOSABLE = WORKLOAD_COLUMNS.flatMap(({ id = "", header }) =>
  id === "name" ? [] : [{ id, label: header as () => string }],
);

export function hiddenColumns({ hide = "" }: WorkloadView): string[] {
  return hide.split(",").filter((id) => CHOOSABLE.some((column) => column.id === id));
}

const ownWords = (): Record<OwnColumn, string> => ({
  local_queue: t`LocalQueue`,
  priority_class: t`Priority class`,
  submitted_by: t`Submitted by`,
  kind: t`Owner`,
});

/** The title of an added column: a label and an annotation by their keys. */
export function addedWords(column: AddedColumn): string {
  const own = OWN_COLUMNS.find((each) => each === column);
  return own === undefined ? column.slice(column.indexOf(":") + 1) : ownWords()[own];
}

function addedText(
  { local_queue, priority_class, submitted_by, owner, labels, annotations }: Workload,
  column: AddedColumn,
) {
  const own = {
    local_queue,
    priority_class,
    submitted_by,
    kind: owner === null ? "" : `${owner.kind}/${owner.name}`,
  };
  const found = OWN_COLUMNS.find((each) => each === column);
  if (found !== undefined) return own[found];
  const key = column.slice(column.indexOf(":") + 1);
  return (column.startsWith("label:") ? labels[key] : annotations?.[key]) ?? "";
}

/** Beside more columns, those that otherwise have a share of the table. */
const BESIDE_ADDED: Readonly<Record<string, string>> = {
  namespace: "110px",
  queue: "140px",
  requests: "200px",
  why: "140px",
};

/** The columns that the list always has, and before the age those that the reader added. */
export function columnsWith(added: readonly AddedColumn[]): DataColumn<Workload>[] {
  const more = added.map((column) =>
    textColumn<Workload>(
      column,
      () => addedWords(column),
      (workload) => addedText(workload, column) || "–",
      { width: "120px", hideBelow: 560, ...(column === "submitted_by" ? { sort: "submitted_by" } : {}) },
    ),
  );
  if (more.length === 0) return WORKLOAD_COLUMNS;
  const own = WORKLOAD_COLUMNS.map((column) => {
    const width = BESIDE_ADDED[column.id ?? ""];
    return width === undefined ? column : { ...column, meta: { ...column.meta, width } };
  });
  return [...own.slice(0, -1), ...more, ...own.slice(-1)];
}

export function WorkloadStateBadge({ workload: { state } }: { workload: Pick<Workload, "state"> }) {
  const { label, color, meaning } = stateLook(state);
  return <BadgeDot label={label} color={color} hint={meaning} />;
}

/** Only what the badge does not say already. */
function Why({ workload }: { workload: Workload }) {
  const { status, state, reason, message } = workload;
  if (status === "Admitted" || state === "OnHold" || state === "Succeeded" || reason === status) return null;
  if (reason === state && message === "") return null;
  const words = state === "Failed" && message !== "" ? message : shortReason(reason);
  return <span title={message || undefined}>{words}</span>;
}

/** The interval; its hint says it as a sentence, or why it is unknown. */
function ExpectedStart({ workload: { expected_start } }: { workload: Workload }) {
  const now = useNow();
  return (
    <span title={expectedWords(expected_start, now) || undefined}>{expectedShort(expected_start, now)}</span>
  );
}

/** The columns of the audit. */
import { t } from "@lingui/core/macro";
import { Text } from "@mantine/core";
import type { AuditRecord } from "@/api/types";
import { BadgeDot, type BadgeDotProps } from "@/components/badge-dot";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { textColumn, timeColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { changesOf } from "@/lib/words/audit-change";

export const verbLooks = (): Record<AuditRecord["verb"], BadgeDotProps> => ({
  create: { label: t`Created`, color: "green" },
  update: { label: t`Changed`, color: "blue" },
  delete: { label: t`Deleted`, color: "orange" },
  login: { label: t`Logged in`, color: "gray" },
  logout: { label: t`Logged out`, color: "gray" },
  "failed-login": { label: t`Login failed`, color: "red" },
  refused: { label: t`Refused`, color: "red" },
});

/** The object as people name it. */
export function objectOf({ kind, namespace, name }: AuditRecord): string {
  return [kind, namespace, name].filter((part) => part !== "").join("/");
}

const NAMES_SHOWN = 3;

/** The first names of objects that one request created together. */
function namesOf({ after }: AuditRecord): string {
  if (!Array.isArray(after?.names)) return "";
  const shown = after.names.slice(0, NAMES_SHOWN).join(", ");
  return after.names.length > NAMES_SHOWN ? `${shown} … (${after.names.length})` : shown;
}

function summaryOf(record: AuditRecord): string {
  if (record.message !== "") return record.message;
  if (record.name === "" && record.verb === "create") return namesOf(record);
  if (record.verb !== "update") return "";
  return changesOf(record.before, record.after)
    .map(({ field, before, after }) => `${field}: ${before ?? "–"} → ${after ?? "–"}`)
    .join(", ");
}

export const AUDIT_COLUMNS: DataColumn<AuditRecord>[] = [
  timeColumn((record) => record.at),
  {
    id: "who",
    header: () => t`User`,
    meta: { width: "14%", hideBelow: 560, below: 2 },
    cell: ({ row: { original } }) =>
      original.username === "" ? (
        <Text span inherit c="dimmed">
          <MiddleEllipsis text={original.process} />
        </Text>
      ) : (
        <MiddleEllipsis text={original.username} />
      ),
  },
  {
    id: "verb",
    header: () => t`Action`,
    meta: { width: "120px", hideBelow: 560, below: 1 },
    cell: ({ row: { original } }) => <BadgeDot {...verbLooks()[original.verb]} />,
  },
  textColumn("object", () => t`Object`, objectOf),
  {
    id: "change",
    header: () => t`Change`,
    meta: { hideBelow: 760, width: "28%", below: 3 },
    cell: ({ row: { original } }) => <span>{summaryOf(original)}</span>,
  },
  textColumn(
    "from",
    () => t`From`,
    (record) => record.address,
    { hideBelow: 1000, width: "120px" },
  ),
];

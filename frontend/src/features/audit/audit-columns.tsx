/** The columns of the audit. */
import { Text } from "@mantine/core";
import type { AuditRecord } from "@/api/types";
import { BadgeDot, type BadgeDotProps } from "@/components/badge-dot";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { ageColumn, textColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { changesOf } from "@/lib/words/audit-change";

export const VERB_LOOKS: Record<AuditRecord["verb"], BadgeDotProps> = {
  create: { label: "Created", color: "green" },
  update: { label: "Changed", color: "blue" },
  delete: { label: "Deleted", color: "orange" },
  login: { label: "Logged in", color: "gray" },
  logout: { label: "Logged out", color: "gray" },
  "failed-login": { label: "Login failed", color: "red" },
  refused: { label: "Refused", color: "red" },
};

/** The object as people name it. */
export function objectOf({ kind, namespace, name }: AuditRecord): string {
  return [kind, namespace, name].filter((part) => part !== "").join("/");
}

function summaryOf(record: AuditRecord): string {
  if (record.message !== "") return record.message;
  if (record.verb !== "update") return "";
  return changesOf(record.before, record.after)
    .map(({ field, before, after }) => `${field}: ${before ?? "–"} → ${after ?? "–"}`)
    .join(", ");
}

export const AUDIT_COLUMNS: DataColumn<AuditRecord>[] = [
  ageColumn((record) => record.at),
  {
    id: "who",
    header: "Who",
    meta: { width: "14%" },
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
    header: "What",
    meta: { width: "120px" },
    cell: ({ row: { original } }) => <BadgeDot {...VERB_LOOKS[original.verb]} />,
  },
  textColumn("object", "Object", objectOf),
  {
    id: "change",
    header: "Change",
    meta: { hideBelow: 760, width: "34%" },
    cell: ({ row: { original } }) => <span>{summaryOf(original)}</span>,
  },
  textColumn("from", "From", (record) => record.address, { hideBelow: 1000, width: "120px" }),
];

/** The cells of a report, in words. */
import { t } from "@lingui/core/macro";
import type { Report, ReportColumn } from "@/api/reports";
import { byName, numbers } from "@/lib/language";
import { formatCount } from "@/lib/quantity";
import { formatDuration, formatTimestamp } from "@/lib/time";
import { preemptionReason } from "@/lib/words/preemption-reason";

const oneDecimal = numbers({ maximumFractionDigits: 1 });
/** Less than ten hours has hundredths: a short job is not 0. */
const hundredths = numbers({ maximumFractionDigits: 2 });
const LEAST_HOURS = 0.01;
const money = numbers({ minimumFractionDigits: 2, maximumFractionDigits: 2 });

export function formatCell(value: unknown, kind: ReportColumn["kind"], currency: string): string {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number")
    return kind === "time" ? formatTimestamp(String(value)) : String(value) || t`(none)`;
  if (kind === "count") return formatCount(value);
  if (kind === "seconds") return formatDuration(value);
  if (kind === "percent") return `${oneDecimal(value)} %`;
  return kind === "money" ? `${money(value)} ${currency}`.trim() : formatHours(value);
}

/** A cell as it is shown: the reason of a preemption in words, any other by its kind. */
export function cellWords(value: unknown, { name, kind }: ReportColumn, currency: string): string {
  if (name === "reason" && typeof value === "string" && value !== "") return preemptionReason(value);
  if (name === "holder") return holderWords(String(value));
  return formatCell(value, kind, currency);
}

/** A holder of a difference: a queue, queues that the reader may not see, or none. */
function holderWords(name: string): string {
  if (name === "(other queues)") return t`queues that you may not see`;
  return name === "(idle)" ? t`no queue: it was idle` : name;
}

function formatHours(value: number): string {
  if (value > 0 && value < LEAST_HOURS) return `< ${hundredths(LEAST_HOURS)}`;
  return (value < 10 ? hundredths : oneDecimal)(value);
}

export function isNumeric({ kind }: ReportColumn): boolean {
  return kind !== "text" && kind !== "time";
}

export interface Bar {
  label: string;
  value: number;
}

const MOST_BARS = 20;

/** The numeric columns that can be drawn, and the largest rows of one of them. */
export function barsOf(report: Report, column: string): Bar[] {
  const place = report.columns.findIndex(({ name }) => name === column);
  const texts = report.columns.flatMap(({ kind }, index) => (kind === "text" ? [index] : []));
  return report.rows
    .flatMap((row) => {
      const value = row[place];
      const label = texts
        .map((text) => cellWords(row[text] ?? "", report.columns[text] as ReportColumn, report.currency))
        .join(" · ");
      return typeof value === "number" ? [{ label, value }] : [];
    })
    .toSorted((a, b) => b.value - a.value)
    .slice(0, MOST_BARS);
}

/** The resources that a report tells apart, GPUs first; none where it has no such column. */
export function resourcesOf({ columns, rows }: Pick<Report, "columns" | "rows">): string[] {
  const place = columns.findIndex(({ name }) => name === RESOURCE);
  if (place < 0) return [];
  const names = [...new Set(rows.map((row) => String(row[place])))];
  return names.toSorted((a, b) => rankOf(a) - rankOf(b) || byName(a, b));
}

/** Devices, then what a cluster has of its own kind, such as nvidia.com/gpu, then the rest. */
function rankOf(resource: string): number {
  if (resource === DEVICE) return 0;
  return resource.includes("/") ? 1 : 2;
}

/** The rows of one resource, the largest first: hours of different units cannot be compared. */
export function ofResource(report: Report, resource: string): Report {
  const place = report.columns.findIndex(({ name }) => name === RESOURCE);
  const hours = report.columns.findIndex(({ name }) => name === "hours");
  const without = <Cell>(cells: readonly Cell[]) => cells.filter((_, index) => index !== place);
  const rows = report.rows.filter((row) => row[place] === resource);
  const size = (row: readonly unknown[]) => Number(row[hours] ?? 0);
  return {
    ...report,
    columns: without(report.columns),
    rows: rows.toSorted((a, b) => size(b) - size(a)).map(without),
  };
}

/** "GPU-hours", "Core-hours": what an hour of the resource is called. */
export function hoursOf(resource: string): string {
  if (resource === DEVICE) return t`GPU-hours`;
  if (resource === "cpu") return t`Core-hours`;
  return IN_GIB.test(resource) ? t`GiB-hours of ${resource}` : t`Hours of ${resource}`;
}

const RESOURCE = "resource";
const DEVICE = "device";
/** The columns that the server counts in GiB. */
const IN_GIB = /^(memory|ephemeral-storage|storage|hugepages-.*)$/;

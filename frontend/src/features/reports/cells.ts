/** What the cells of a report mean, for people. */
import { t } from "@lingui/core/macro";
import type { Report, ReportColumn } from "@/api/reports";
import { numbers } from "@/lib/language";
import { formatCount } from "@/lib/quantity";
import { formatDuration, formatTimestamp } from "@/lib/time";

const oneDecimal = numbers({ maximumFractionDigits: 1 });
const money = numbers({ minimumFractionDigits: 2, maximumFractionDigits: 2 });

export function formatCell(value: unknown, kind: ReportColumn["kind"], currency: string): string {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number")
    return kind === "time" ? formatTimestamp(String(value)) : String(value) || t`(none)`;
  if (kind === "count") return formatCount(value);
  if (kind === "seconds") return formatDuration(value);
  if (kind === "percent") return `${oneDecimal(value)} %`;
  return kind === "money" ? `${money(value)} ${currency}`.trim() : oneDecimal(value);
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
      const label = texts.map((text) => String(row[text] ?? "") || t`(none)`).join(" · ");
      return typeof value === "number" ? [{ label, value }] : [];
    })
    .toSorted((a, b) => b.value - a.value)
    .slice(0, MOST_BARS);
}

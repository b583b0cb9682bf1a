/** The rows of a report, with its totals. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table } from "@mantine/core";
import type { Report } from "@/api/reports";
import { WideTable } from "@/components/table/wide-table";
import { cellWords, formatCell, isNumeric } from "./cells";

interface ReportTableProps {
  report: Report;
  title: string;
  titleOf: (column: Report["columns"][number]) => string;
}

export function ReportTable({ report, title, titleOf }: ReportTableProps) {
  const { columns, rows, totals, currency } = report;
  return (
    <WideTable blocks>
      <Table verticalSpacing={5} highlightOnHover layout="auto" aria-label={title}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column.name} ta={isNumeric(column) ? "right" : "left"}>
                {titleOf(column)}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.join("\n")}>
              {columns.map((column, place) => (
                <Table.Td
                  key={column.name}
                  ta={isNumeric(column) ? "right" : "left"}
                  data-label={titleOf(column)}
                >
                  {cellWords(row[place], column, currency)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
        {Object.keys(totals).length > 0 && (
          <Table.Tfoot>
            <Table.Tr>
              {columns.map((column, place) => (
                <Table.Th key={column.name} ta={isNumeric(column) ? "right" : "left"}>
                  {place === 0
                    ? t`All`
                    : column.name in totals
                      ? formatCell(totals[column.name], column.kind, currency)
                      : ""}
                </Table.Th>
              ))}
            </Table.Tr>
            {"stranded_device_hours" in totals && (
              <Table.Tr>
                <Table.Td colSpan={columns.length} data-wide>
                  <Trans>
                    Stranded, not charged: {formatCell(totals.stranded_device_hours, "hours", currency)}{" "}
                    GPU-hours
                  </Trans>
                </Table.Td>
              </Table.Tr>
            )}
          </Table.Tfoot>
        )}
      </Table>
    </WideTable>
  );
}

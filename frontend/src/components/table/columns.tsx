/** Columns that many tables have. */
import { t } from "@lingui/core/macro";
import { Ago } from "@/components/ago";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { ClusterQueueLink } from "@/components/object-links";
import { formatLogTime, formatTimestamp } from "@/lib/time";
import type { ColumnLook, DataColumn } from "./data-table";

/** How long ago, in one unit. */
export function ageColumn<Row extends object>(
  timeOf: (row: Row) => string | null,
  look: ColumnLook = {},
): DataColumn<Row> {
  return {
    id: "age",
    header: () => t`Age`,
    meta: { width: "66px", ...look },
    cell: ({ row: { original } }) => <Ago time={timeOf(original)} short />,
  };
}

/** The time of day, with its date where that is not today: for logs, which are read by the clock. */
export function timeColumn<Row extends object>(timeOf: (row: Row) => string): DataColumn<Row> {
  return {
    id: "time",
    header: () => t`Time`,
    meta: { width: "116px" },
    cell: ({ row: { original } }) => {
      const iso = timeOf(original);
      return (
        <time dateTime={iso} title={formatTimestamp(iso)} className="kw-number">
          {formatLogTime(iso)}
        </time>
      );
    },
  };
}

/** A name, which loses its middle where there is no room. */
export function textColumn<Row extends object>(
  id: string,
  header: () => string,
  textOf: (row: Row) => string,
  look: ColumnLook = {},
): DataColumn<Row> {
  return {
    id,
    header,
    meta: look,
    cell: ({ row: { original } }) => <MiddleEllipsis text={textOf(original)} />,
  };
}

/** The ClusterQueue that a row is of, or none yet. */
export function clusterQueueColumn<Row extends { cluster_queue: string }>(look: ColumnLook): DataColumn<Row> {
  return {
    id: "queue",
    header: () => t`ClusterQueue`,
    meta: look,
    cell: ({ row: { original } }) =>
      original.cluster_queue === "" ? "–" : <ClusterQueueLink name={original.cluster_queue} inRow />,
  };
}

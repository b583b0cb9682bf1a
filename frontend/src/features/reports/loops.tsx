/** Queues that displace each other in turns: below the report on preemptions. */
import { t } from "@lingui/core/macro";
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { reportQuery } from "@/api/reports";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import type { TimeRange } from "@/lib/url/time-range";
import { ReportTable } from "./report-table";
import { columnTitle } from "./report-words";
import classes from "./reports.module.css";

export function Loops({ range }: { range: TimeRange }) {
  const found = useQuery(reportQuery(useCluster(), { kind: "loops", by: [], range }));
  const title = t`Queues that displace each other`;
  const isFlush = found.data !== undefined && found.data.rows.length > 0;
  return (
    <Panel title={title} flush={isFlush} className={classes.section ?? ""}>
      <QueryError title={t`The loops cannot be shown`} query={found} />
      {found.data !== undefined &&
        (isFlush ? (
          <ReportTable report={found.data} title={title} titleOf={columnTitle} />
        ) : (
          <Text size="sm" c="var(--kw-muted)">
            {t`No two queues displaced each other in this period.`}
          </Text>
        ))}
    </Panel>
  );
}

/** The events of a workload, the newest first. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import type { Workload } from "@/api/types";
import { workloadEventsQuery } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { EmptyState } from "@/components/empty-state";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import classes from "../workloads.module.css";

export function Events({ workload }: { workload: Workload }) {
  const events = useQuery(workloadEventsQuery(useCluster(), workload));
  const newestFirst = events.data?.results.toSorted((a, b) => b.at.localeCompare(a.at) || b.id - a.id);
  return (
    <Panel title={t`Events`}>
      {events.isPending && <Skeleton height={160} />}
      <QueryError title={t`The events cannot be shown`} query={events} />
      {newestFirst?.length === 0 && <EmptyState icon="clock" title={t`No events yet`} />}
      {newestFirst?.map((event) => (
        <div key={event.id} className={classes.event} data-warning={event.type === "Warning" || undefined}>
          <Text fz="sm" fw={600}>
            {event.reason}
          </Text>
          {event.message !== "" && (
            <Text fz="sm" style={{ overflowWrap: "anywhere" }}>
              {event.message}
            </Text>
          )}
          <Text fz="xs" c="var(--kw-muted)">
            <Ago time={event.at} />
            {event.actor !== "" && (
              <>
                {" "}
                <Trans>by {event.actor}</Trans>
              </>
            )}
          </Text>
        </div>
      ))}
    </Panel>
  );
}

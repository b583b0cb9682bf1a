/** How the scheduler, the push and the watcher of the cluster are doing, each number with what it means. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { diagnosticsQuery } from "@/api/cluster-settings";
import type { Diagnostics } from "@/api/types";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import { TextLink } from "@/components/link";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { formatCount } from "@/lib/quantity";
import { formatMilliseconds } from "@/lib/time";

export function DiagnosticsPanel() {
  const found = useQuery(diagnosticsQuery(useCluster()));
  // It is for those who see the whole cluster; to the others the settings alone are shown.
  if (found.error instanceof ApiError && found.error.status === 403) return null;
  return (
    <Panel
      title={t`Scheduler`}
      flush
      aside={
        <TextLink to="/cycles" fz="sm">
          <Trans>All cycles</Trans>
        </TextLink>
      }
    >
      {found.isPending && <Skeleton height={320} width="auto" m="md" />}
      <QueryError title={t`The scheduler's state cannot be shown`} query={found} />
      {found.data !== undefined && <Numbers {...found.data} />}
    </Panel>
  );
}

function Numbers({ leader, cycles, notes, push, watcher, ...books }: Diagnostics) {
  const { served_object_problems: problems, broken_rules: broken } = books;
  const none = t`none in the last hour`;
  const time = (seconds: number | null) => (seconds === null ? none : formatMilliseconds(seconds));
  return (
    <Table fz="sm" verticalSpacing={7} horizontalSpacing="md" layout="auto">
      <Table.Tbody>
        <Row
          name={t`Leader`}
          value={<State ok={leader.alive} good={leader.holder} bad={t`No leader: nothing is decided`} />}
          meaning={t`The process that decides. One process leads at a time; the others stand by.`}
        />
        <Row
          name={t`Epoch`}
          value={
            <>
              {formatCount(leader.epoch)}
              {leader.acquired_at !== null && (
                <>
                  , <Trans>since</Trans> <Ago time={leader.acquired_at} />
                </>
              )}
            </>
          }
          meaning={t`Increases whenever the leader changes. Many changes in a short time mean that the scheduler restarts.`}
        />
        <Row
          name={t`Lease renewed`}
          value={<Ago time={leader.renewed_at} />}
          meaning={t`The leader renews its lease while it works. A lease that is not renewed for 15 seconds expires.`}
        />
        <Row
          name={t`Last cycle`}
          value={
            cycles.last === null ? (
              t`none yet`
            ) : (
              <Trans>
                <Ago time={cycles.last.started_at} />, in {formatMilliseconds(cycles.last.duration_seconds)}
              </Trans>
            )
          }
          meaning={t`The newest cycle that made a decision. Cycles without a decision are not recorded.`}
        />
        <Row
          name={t`Cycles in the last hour`}
          value={formatCount(cycles.count)}
          meaning={t`Number of cycles that made a decision.`}
        />
        <Row
          name={t`Cycle time: median, 90th percentile, maximum`}
          value={
            cycles.count === 0
              ? none
              : [cycles.p50_seconds, cycles.p90_seconds, cycles.longest_seconds].map(time).join(" · ")
          }
          meaning={t`Half of the cycles were no longer than the first value, nine in ten no longer than the second.`}
        />
        <Row
          name={t`Changes not read yet`}
          value={<Backlog {...notes} />}
          meaning={t`Row changes that the scheduler has not read yet. A short backlog is normal; a growing one means that it cannot keep up.`}
        />
        <Row
          name={t`Decisions not pushed yet`}
          value={<Backlog {...push} />}
          meaning={t`Workloads with a decision that has not been written to the cluster yet.`}
        />
        <Row
          name={t`Refused by the cluster`}
          value={<Bad count={push.refused} />}
          meaning={t`Workloads whose last decision the cluster refused; their pages say why. The push is retried.`}
        />
        {push.held_off_by !== "" && (
          <Row
            name={t`Paused because of`}
            value={<State ok={false} good="" bad={push.held_off_by} />}
            meaning={t`A Kueue also decides here, or another kueueweb pushes to this cluster: this installation writes nothing meanwhile.`}
          />
        )}
        <Row
          name={t`Watcher`}
          value={
            <>
              <State ok={watcher.alive} good={t`listening`} bad={t`Silent`} />{" "}
              {watcher.last_event_at !== null && <Ago time={watcher.last_event_at} />}
            </>
          }
          meaning={t`Reads nodes, jobs and pods from the cluster. Shows the time of the last event.`}
        />
        <Row
          name={t`Objects that differ`}
          value={<Bad count={problems} />}
          meaning={t`Kueue's objects that differ between the cluster and kueueweb. They are listed below, under Kueue's objects in the cluster.`}
        />
        <Row
          name={t`Accounting inconsistencies`}
          value={
            broken.length === 0 ? (
              <Bad count={0} />
            ) : (
              broken.map(({ check, count }) => `${check}: ${formatCount(count)}`).join(", ")
            )
          }
          meaning={t`Violations found by two quota and slice audits in a row. There should be none.`}
        />
      </Table.Tbody>
    </Table>
  );
}

function Row({ name, value, meaning }: { name: string; value: ReactNode; meaning: string }) {
  return (
    <Table.Tr>
      <Table.Td w={{ base: "62%", sm: "34%" }} style={{ verticalAlign: "top" }}>
        {name}
        <Text fz="xs" c="var(--kw-muted)" hiddenFrom="sm">
          {meaning}
        </Text>
      </Table.Td>
      <Table.Td className="kw-number" style={{ verticalAlign: "top", overflowWrap: "anywhere" }}>
        {value}
      </Table.Td>
      <Table.Td w="42%" c="var(--kw-muted)" fz="xs" visibleFrom="sm">
        {meaning}
      </Table.Td>
    </Table.Tr>
  );
}

function State({ ok, good, bad }: { ok: boolean; good: string; bad: string }) {
  return <BadgeDot color={ok ? "teal" : "red"} label={ok ? good : bad} />;
}

function Bad({ count }: { count: number }) {
  return count === 0 ? <Trans>none</Trans> : <BadgeDot color="red" label={formatCount(count)} />;
}

function Backlog({ waiting, oldest_at: oldest }: Diagnostics["notes"]) {
  if (waiting === 0) return <Trans>none</Trans>;
  return (
    <Trans>
      {formatCount(waiting)}, the oldest of <Ago time={oldest} />
    </Trans>
  );
}

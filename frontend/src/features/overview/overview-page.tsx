/** Is the cluster well, how full is it, who waits, and what was decided last? */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Grid, Skeleton } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useLive } from "@/api/cluster";
import { waiting } from "@/api/live/live-data";
import { isClusterAdmin, sessionQuery } from "@/api/session";
import type { LiveTotals } from "@/api/types";
import { Stat } from "@/components/figures/stat";
import { PageHeader } from "@/components/page-header";
import { formatCount, formatMib, formatShare } from "@/lib/quantity";
import { ClusterHealth } from "./cluster-health";
import { HeatMap } from "./heat-map";
import { HottestQueues } from "./hottest-queues";
import { JudgementLine } from "./judgement-line";
import { MyJobs } from "./my-jobs";
import classes from "./overview.module.css";
import { PendingReasons } from "./pending-reasons";
import { QuotaUse } from "./quota-use";
import { RecentDecisions } from "./recent-decisions";

/** `history`: the charts of the cluster. */
export function OverviewPage({ history }: { history: ReactNode }) {
  const totals = useLive((live) => live.data?.totals);
  const { data: session } = useSuspenseQuery(sessionQuery());
  const admin = isClusterAdmin(session);
  const username = session.user?.username;
  return (
    <>
      <PageHeader title={t`Overview`} />
      {username !== undefined && !admin && <MyJobs username={username} />}
      <JudgementLine />
      <Grid gap="md" mb="md">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <HeatMap />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <HottestQueues />
        </Grid.Col>
      </Grid>
      {totals === undefined ? <StatSkeletons /> : <Totals totals={totals} />}
      <Grid mt="md" gap="md">
        <Grid.Col span={{ base: 12, md: 6, lg: 4 }}>
          <PendingReasons />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6, lg: 4 }}>
          <ClusterHealth />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <QuotaUse />
        </Grid.Col>
        <Grid.Col span={12}>{history}</Grid.Col>
        <Grid.Col span={12}>
          <RecentDecisions />
        </Grid.Col>
      </Grid>
    </>
  );
}

function Totals({ totals }: { totals: LiveTotals }) {
  const meter = (used: number, total: number, label: string) => ({
    segments: [{ value: used, color: "var(--kw-used)", label }],
    total,
    label,
  });
  const memory = t`${formatMib(totals.used_memory_mib)} of ${formatMib(totals.memory_mib)}`;
  return (
    <div className={classes.totals}>
      <Stat
        label={t`Pending workloads`}
        value={formatCount(waiting(totals))}
        note={t`${formatCount(totals.inadmissible)} inadmissible`}
      />
      <Stat
        label={t`Admitted workloads`}
        value={formatCount(totals.admitted)}
        note={t`${formatCount(totals.reserving)} hold quota`}
      />
      <Stat
        label={t`Devices in use`}
        value={
          <>
            {formatCount(totals.devices_in_use)}{" "}
            <small>
              <Trans>of {formatCount(totals.devices)}</Trans>
            </small>
          </>
        }
        meter={meter(
          totals.devices_in_use,
          totals.devices,
          t`${totals.devices_in_use} of ${totals.devices} devices in use`,
        )}
        note={t`${formatCount(totals.used_slots)} slices on ${formatCount(totals.nodes)} nodes`}
      />
      <Stat
        label={t`GPU memory held`}
        value={formatShare(totals.used_memory_mib, totals.memory_mib)}
        meter={meter(totals.used_memory_mib, totals.memory_mib, memory)}
        note={memory}
      />
      <Stat
        label={t`GPU cores held`}
        value={formatShare(totals.used_cores_percent, totals.cores_percent)}
        meter={meter(totals.used_cores_percent, totals.cores_percent, t`GPU cores held`)}
        note={t`${formatCount(totals.used_cores_percent / 100)} of ${formatCount(totals.cores_percent / 100)} devices' worth`}
      />
    </div>
  );
}

function StatSkeletons() {
  return (
    <div className={classes.totals} role="status" aria-label={t`Loading`} aria-busy>
      {["pending", "admitted", "devices", "memory", "cores"].map((name) => (
        <Skeleton key={name} height={104} />
      ))}
    </div>
  );
}

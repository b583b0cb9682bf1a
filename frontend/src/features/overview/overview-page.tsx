/** Is the cluster well, how full is it, who waits, and what was decided last? */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { deviceUsageQuery } from "@/api/devices";
import { waiting } from "@/api/live/live-data";
import { overviewQuery } from "@/api/overview";
import { useIsPast } from "@/api/past/past";
import { isClusterAdmin, sessionQuery } from "@/api/session";
import type { LiveTotals } from "@/api/types";
import { Stat } from "@/components/figures/stat";
import { PageHeader } from "@/components/page-header";
import { formatCount, formatMib, formatShare } from "@/lib/quantity";
import { ClusterHealth } from "./cluster-health";
import { HeatMap } from "./heat-map";
import { HottestQueues } from "./hottest-queues";
import { usageSums } from "./judgement";
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
  const isPast = useIsPast();
  return (
    <>
      <PageHeader title={t`Overview`} />
      {username !== undefined && !admin && !isPast && <MyJobs username={username} />}
      {!isPast && <JudgementLine />}
      <HeatMap />
      <div className={classes.history}>{history}</div>
      {totals === undefined ? <StatSkeletons /> : <Totals totals={totals} />}
      <div className={classes.lists}>
        <HottestQueues />
        {!isPast && <PendingReasons />}
        <QuotaUse />
      </div>
      {!isPast && (
        <>
          <RecentDecisions />
          <ClusterHealth />
        </>
      )}
    </>
  );
}

function Totals({ totals }: { totals: LiveTotals }) {
  const use = useUse();
  // A workload on hold waits for its user: the judgement counts it apart, and so does this.
  const counted = useQuery(overviewQuery(useCluster())).data?.totals;
  const meter = (used: number, total: number, label: string) => ({
    segments: [{ value: used, color: "var(--kw-used)", label }],
    total,
    label,
  });
  const memory = t`${formatMib(totals.used_memory_mib)} of ${formatMib(totals.memory_mib)}`;
  const really = (used: number, total: number) => {
    const label = t`Actual use: ${formatShare(used, total)}`;
    return { second: { segments: [{ value: used, color: REALLY_USED, label }], total, label } };
  };
  return (
    <div className={classes.totals}>
      <Stat
        label={t`Pending workloads`}
        value={formatCount(counted?.pending ?? waiting(totals))}
        note={
          counted === undefined
            ? t`${formatCount(totals.inadmissible)} inadmissible`
            : t`${formatCount(counted.held)} more on hold`
        }
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
        meter={{
          ...meter(totals.used_memory_mib, totals.memory_mib, memory),
          ...(use.memoryMib === null ? {} : really(use.memoryMib, totals.memory_mib)),
        }}
        note={
          use.memoryMib === null
            ? memory
            : t`${memory}, actual use ${formatShare(use.memoryMib, totals.memory_mib)}`
        }
      />
      <Stat
        label={t`GPU cores held`}
        value={formatShare(totals.used_cores_percent, totals.cores_percent)}
        meter={{
          ...meter(totals.used_cores_percent, totals.cores_percent, t`GPU cores held`),
          ...(use.busyPercent === null ? {} : really(use.busyPercent, totals.cores_percent)),
        }}
        note={
          use.busyPercent === null
            ? t`${formatCount(totals.used_cores_percent / 100)} of ${formatCount(totals.cores_percent / 100)} devices' worth`
            : t`${formatCount(totals.used_cores_percent / 100)} of ${formatCount(totals.cores_percent / 100)} devices' worth, busy ${formatShare(use.busyPercent, totals.cores_percent)}`
        }
      />
    </div>
  );
}

const REALLY_USED = "var(--mantine-color-teal-6)";

/** The present use of all devices, as their monitors report it. */
function useUse() {
  const usage = useQuery(deviceUsageQuery(useCluster())).data?.results;
  return useMemo(() => usageSums(usage ?? []), [usage]);
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

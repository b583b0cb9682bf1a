/** How the cluster is, in one sentence whose parts lead to what they say. */
import { plural, t } from "@lingui/core/macro";
import { Paper, Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment, type ReactNode, useMemo } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { deviceUsageQuery } from "@/api/devices";
import { overviewQuery } from "@/api/overview";
import type { Overview } from "@/api/types";
import { TextLink } from "@/components/link";
import { formatCount } from "@/lib/quantity";
import { deviceModel } from "@/lib/words/device-words";
import { shortReason } from "@/lib/words/pending-reason";
import { type DeviceSums, deviceSums } from "./judgement";
import classes from "./overview.module.css";

export function JudgementLine() {
  const cluster = useCluster();
  const overview = useQuery(overviewQuery(cluster)).data;
  const usage = useQuery(deviceUsageQuery(cluster)).data?.results;
  const devices = useLive((live) => live.data?.devices);
  const sums = useMemo(
    () => (devices === undefined ? undefined : deviceSums(devices, usage ?? [])),
    [devices, usage],
  );
  if (overview === undefined || sums === undefined) return <Skeleton height={54} mb="md" />;
  const parts: [string, ReactNode][] = [["waiting", <WaitingPart key="waiting" overview={overview} />]];
  const { held } = overview.totals;
  if (held > 0) {
    const words = plural(held, { one: "# on hold", other: "# on hold" });
    parts.push([
      "held",
      <TextLink key="held" to="/workloads" search={{ state: "OnHold" }} inherit>
        {words}
      </TextLink>,
    ]);
  }
  if (sums.all > 0) {
    parts.push([
      "free",
      <Fragment key="free">
        <TextLink to="/gpus" search={{ state: "free" }} inherit>
          {t`${formatCount(sums.free)} of ${formatCount(sums.all)} GPUs free`}
        </TextLink>
        <FreeByType types={sums.freeByType} />
      </Fragment>,
    ]);
  }
  if (sums.idle !== null && sums.idle > 0) {
    parts.push([
      "idle",
      <TextLink key="idle" to="/gpus" search={{ idle: true }} inherit>
        {t`${formatCount(sums.idle)} held but idle`}
      </TextLink>,
    ]);
  }
  parts.push(["broken", <BrokenPart key="broken" unhealthy={sums.unhealthy} health={overview.health} />]);
  return (
    <Paper component="section" aria-label={t`State of the cluster`} className={classes.judgement} data-live>
      <Text component="p" m={0} inherit>
        {parts.map(([name, part], place) => (
          <Fragment key={name}>
            {place > 0 && "; "}
            {part}
          </Fragment>
        ))}
        .
      </Text>
    </Paper>
  );
}

/** More kinds than these are told by the GPU page. */
const MOST_TYPES = 4;

/** " (6 Tesla V100-SXM2-32GB, 3 Ascend910B3)": a free device is of use only to workloads that may run on its kind. */
function FreeByType({ types }: { types: DeviceSums["freeByType"] }) {
  if (types.length === 0 || types.length > MOST_TYPES) return null;
  return (
    <>
      {" ("}
      {types.map(({ type, count }, place) => (
        <Fragment key={type}>
          {place > 0 && ", "}
          <TextLink to="/gpus" search={{ state: "free", type }} inherit>
            {formatCount(count)} {deviceModel(type)}
          </TextLink>
        </Fragment>
      ))}
      )
    </>
  );
}

function WaitingPart({ overview }: { overview: Overview }) {
  const { pending } = overview.totals;
  const reasons = overview.pending_by_reason.filter(({ count }) => count > 0);
  if (pending === 0) return t`No workload waits`;
  const words = plural(pending, { one: "# workload waits", other: "# workloads wait" });
  const [only] = reasons;
  return (
    <>
      <TextLink to="/workloads" search={{ state: "Pending" }} inherit>
        {words}
      </TextLink>
      {reasons.map(({ reason, count }, place) => (
        <Fragment key={reason}>
          {place === 0 ? ": " : ", "}
          <TextLink
            to="/workloads"
            search={{ state: "Pending", ...(reason === "" ? {} : { reason }) }}
            inherit
            title={reason}
          >
            {reasons.length === 1 && count === only?.count
              ? shortReason(reason || "PendingEvaluation")
              : `${shortReason(reason || "PendingEvaluation")} (${formatCount(count)})`}
          </TextLink>
        </Fragment>
      ))}
    </>
  );
}

/** The broken parts by name: devices, and the processes on which the numbers depend. */
function BrokenPart({ unhealthy, health }: { unhealthy: number; health: Overview["health"] }) {
  const silent = [
    ...(health.scheduler.alive ? [] : [t`scheduler`]),
    ...(health.watcher.alive ? [] : [t`watcher`]),
  ];
  if (unhealthy === 0 && silent.length === 0) return t`no GPU is unhealthy`;
  return (
    <>
      {unhealthy > 0 && (
        <TextLink to="/gpus" search={{ state: "unhealthy" }} inherit c="red">
          {plural(unhealthy, { one: "# GPU is unhealthy", other: "# GPUs are unhealthy" })}
        </TextLink>
      )}
      {unhealthy > 0 && silent.length > 0 && ", "}
      {silent.length > 0 && (
        <TextLink to="/cluster" inherit c="red">
          {t`silent: ${silent.join(", ")}`}
        </TextLink>
      )}
    </>
  );
}

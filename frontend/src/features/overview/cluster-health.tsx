/** Whether the parts that the numbers depend on are alive. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { overviewQuery } from "@/api/overview";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { useFirstRead } from "@/lib/first-read";
import { formatDuration } from "@/lib/time";
import classes from "./overview.module.css";

const ROLES = {
  scheduler: () => t`Scheduler`,
  push: () => t`Push workers`,
  beat: () => t`Clock`,
  watcher: () => t`Watcher`,
  webhook: () => t`Webhook`,
  visibility: () => t`Visibility`,
  studio: () => t`Studio`,
  web: () => t`Web`,
  "api-server": () => t`API server of the cluster`,
  "cluster-push": () => t`Push to the cluster`,
};

export function ClusterHealth() {
  const cluster = useCluster();
  const overview = useQuery(overviewQuery(cluster));
  const first = useFirstRead(overview);
  const health = overview.data?.health;
  return (
    <Panel title={t`Health`} mt="md">
      <div className={classes.health}>
        {first.waits && <Skeleton height={40} width={320} />}
        {first.error !== null && (
          <QueryError
            title={t`Health is unknown`}
            query={{ error: first.error, refetch: overview.refetch }}
          />
        )}
        <StreamHealth />
        {health !== undefined && (
          <>
            <Part name={t`Scheduler`} alive={health.scheduler.alive} dead={t`No leader`}>
              <Trans>
                leader epoch {health.scheduler.epoch}, last heartbeat{" "}
                <Ago time={health.scheduler.heartbeat_at} />
              </Trans>
            </Part>
            <Part name={t`Watcher`} alive={health.watcher.alive} dead={t`Silent`}>
              {health.watcher.last_event_at === null ? (
                <Trans>no event from the cluster yet</Trans>
              ) : (
                <Trans>
                  last event from the cluster <Ago time={health.watcher.last_event_at} />
                </Trans>
              )}
            </Part>
            {health.roles
              .filter((role) => role.alive && hasWrongClock(role.clock_ahead_seconds))
              .map((role) => (
                <Part
                  key={`clock-${role.role}`}
                  name={ROLES[role.role]()}
                  alive={false}
                  dead={t`Wrong clock`}
                >
                  <ClockDifference seconds={role.clock_ahead_seconds ?? 0} />
                </Part>
              ))}
            {health.roles
              .filter((role) => !role.alive && role.role !== "scheduler" && role.role !== "watcher")
              .map((role) => (
                <Part
                  key={role.role}
                  name={ROLES[role.role]()}
                  alive={false}
                  dead={role.role === "cluster-push" ? t`Fails` : t`Silent`}
                >
                  {role.role === "cluster-push" ? (
                    <Trans>
                      began to fail <Ago time={role.last_seen_at} />
                    </Trans>
                  ) : role.last_seen_at === null ? (
                    <Trans>not seen yet</Trans>
                  ) : (
                    <Trans>
                      last heartbeat <Ago time={role.last_seen_at} />
                    </Trans>
                  )}
                </Part>
              ))}
            {health.kueue.alive && (
              <Part name={t`Another scheduler`} alive={false} dead={t`Nothing is pushed`}>
                <Trans>
                  A Kueue also decides in this cluster: stop it, or ask an admin to set the mode to observe.
                </Trans>
              </Part>
            )}
            {health.other_kueueweb !== "" && (
              <Part name={t`Another kueueweb`} alive={false} dead={t`Nothing is pushed`}>
                <Trans>
                  {health.other_kueueweb} pushes to this cluster. This installation takes over one minute
                  after the other stops.
                </Trans>
              </Part>
            )}
          </>
        )}
      </div>
      {health !== undefined && <UnservedKinds {...health.job_kinds} />}
    </Panel>
  );
}

/** The same number as in `foundation/heartbeat.py`. */
const WRONG_CLOCK_SECONDS = 5;

function hasWrongClock(aheadSeconds: number | null) {
  return aheadSeconds !== null && Math.abs(aheadSeconds) > WRONG_CLOCK_SECONDS;
}

function ClockDifference({ seconds }: { seconds: number }) {
  const difference = formatDuration(Math.abs(seconds));
  return seconds > 0 ? (
    <Trans>{difference} ahead: synchronize the clocks with NTP</Trans>
  ) : (
    <Trans>{difference} behind: synchronize the clocks with NTP</Trans>
  );
}

/** Kinds of jobs that do not run here, and what to do about it. */
function UnservedKinds({ missing, disabled }: { missing: string[]; disabled: string[] }) {
  const lines = [
    { names: missing, why: t`Not served by the cluster: install the operator` },
    { names: disabled, why: t`Not managed: add it to integrations.frameworks` },
  ];
  return lines
    .filter((line) => line.names.length > 0)
    .map((line) => (
      <Text key={line.why} fz="xs" c="var(--kw-muted)" mt={8}>
        {line.why}: {line.names.join(", ")}
      </Text>
    ));
}

function StreamHealth() {
  const alive = useLive((live) => live.status === "live");
  const time = useLive((live) => live.time);
  return (
    <Line
      name={t`Live stream`}
      look={alive ? { label: t`Alive`, color: "teal" } : { label: t`Stale`, color: "orange" }}
    >
      <Trans>
        last update <Ago time={time} />
      </Trans>
    </Line>
  );
}

interface PartProps {
  name: string;
  alive: boolean;
  dead: string;
  children: ReactNode;
}

/** While the page hears nothing, that a part was alive says nothing of now. */
function Part({ name, alive, dead, children }: PartProps) {
  const heard = useLive((live) => live.staleSince === null);
  const well = heard ? { label: t`Alive`, color: "teal" } : { label: t`Unknown`, color: "gray" };
  return (
    <Line name={name} look={alive ? well : { label: dead, color: "orange" }}>
      {children}
    </Line>
  );
}

function Line({
  name,
  look,
  children,
}: {
  name: string;
  look: { label: string; color: string };
  children: ReactNode;
}) {
  return (
    <div>
      <Group gap="xs" wrap="nowrap">
        <Text fz="sm" fw={550}>
          {name}
        </Text>
        <BadgeDot {...look} />
      </Group>
      <Text fz="xs" c="var(--kw-muted)">
        {children}
      </Text>
    </div>
  );
}

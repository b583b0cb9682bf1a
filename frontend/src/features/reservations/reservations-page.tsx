/** The calendar of reservations: which nodes are kept free, when, and for whom. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, SegmentedControl, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useCluster } from "@/api/cluster";
import { calendarQuery } from "@/api/hardware/reservations";
import { EmptyState } from "@/components/empty-state";
import { Icon } from "@/components/icon";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { type CalendarPeriod, daysOf, shifted } from "@/lib/calendar-period";
import { useNow } from "@/lib/clock";
import { ReservationTable } from "./reservation-table";
import { Timeline } from "./timeline";
import { reservationsOf } from "./windows";

export interface ReservationsPageProps {
  period: CalendarPeriod;
  onPeriod: (period: CalendarPeriod) => void;
  /** The button by which a reservation is made. */
  actions: ReactNode;
  /** The buttons of one reservation. */
  buttons: (name: string) => ReactNode;
}

export function ReservationsPage({ period, onPeriod, actions, buttons }: ReservationsPageProps) {
  const now = useNow();
  const days = daysOf(period, now);
  const calendar = useQuery(calendarQuery(useCluster(), days[0] ?? now, days.at(-1) ?? now));
  const reservations = reservationsOf(calendar.data?.windows ?? []);
  return (
    <>
      <PageHeader
        title={t`Reservations`}
        facts={t`Nodes that are kept free for certain workloads, or for maintenance. Until a window starts, its nodes may run workloads that end before it.`}
        actions={actions}
      />
      <Stack gap="md">
        <PeriodBar period={period} now={now} onPeriod={onPeriod} />
        {calendar.isPending && <Skeleton height={240} />}
        <QueryError title={t`The reservations cannot be shown`} query={calendar} />
        {calendar.data !== undefined && reservations.length === 0 && (
          <Panel>
            <EmptyState icon="clock" title={t`No reservations on these days`}>
              <Trans>
                A Reservation keeps nodes free during a window of time: once, daily or weekly. Without allowed
                workloads, it is a maintenance window.
              </Trans>
            </EmptyState>
          </Panel>
        )}
        {reservations.length > 0 && (
          <>
            <Panel>
              <Timeline reservations={reservations} days={days} now={now} />
            </Panel>
            <ReservationTable reservations={reservations} now={now} buttons={buttons} />
          </>
        )}
        {calendar.data?.truncated && (
          <Text fz="sm" c="var(--kw-muted)">
            <Trans>There are more than 1,000 windows on these days: the latest are not shown.</Trans>
          </Text>
        )}
      </Stack>
    </>
  );
}

interface PeriodBarProps extends Pick<ReservationsPageProps, "period" | "onPeriod"> {
  now: number;
}

/** Weeks back and forth, and back to today. */
function PeriodBar({ period, now, onPeriod }: PeriodBarProps) {
  const { from: _, ...today } = period;
  return (
    <Group gap="xs">
      <ActionIcon
        variant="default"
        aria-label={t`Earlier`}
        onClick={() => onPeriod(shifted(period, -1, now))}
      >
        <Icon name="back" size={14} />
      </ActionIcon>
      <Button
        size="xs"
        variant="default"
        disabled={period.from === undefined}
        onClick={() => onPeriod(today)}
      >
        <Trans>Today</Trans>
      </Button>
      <ActionIcon variant="default" aria-label={t`Later`} onClick={() => onPeriod(shifted(period, 1, now))}>
        <Icon name="right" size={14} />
      </ActionIcon>
      <SegmentedControl
        size="xs"
        aria-label={t`Length of the period`}
        value={String(period.days ?? 7)}
        data={[
          { value: "7", label: t`7 days` },
          { value: "28", label: t`28 days` },
        ]}
        onChange={(days) => {
          const { days: _, ...rest } = period;
          onPeriod(days === "28" ? { ...rest, days: 28 } : rest);
        }}
      />
    </Group>
  );
}

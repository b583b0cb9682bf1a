/** The notifications of the clusters on screen, and the rules that send them. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Grid } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCluster, useClusterNames, useClusterOf, useInCluster } from "@/api/cluster";
import { notificationStatusQuery, notificationsQuery, useMarkRead } from "@/api/notifications";
import type { Notification } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { PagedTable, renewTop } from "@/components/table/paged-table";
import { pageOf } from "@/lib/words/notification-event";
import { NOTIFICATION_COLUMNS } from "./notification-columns";
import { Rules } from "./rules";

export function NotificationsPage() {
  return (
    <>
      <PageHeader title={t`Notifications`} />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Told />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Rules />
        </Grid.Col>
      </Grid>
    </>
  );
}

const RENEW_MS = 10_000;

const clusterOfRow = ({ cluster }: Notification) => cluster;

function Told() {
  const cluster = useCluster();
  const navigate = useNavigate();
  const list = useInfiniteQuery({ ...notificationsQuery(cluster), refetchInterval: renewTop(RENEW_MS) });
  const unread = useQuery(notificationStatusQuery(cluster)).data?.unread ?? 0;
  const names = useClusterNames();
  const inCluster = useInCluster();
  const clusterOf = useClusterOf(clusterOfRow);
  const read = useMarkRead();
  const open = (row: Notification) => {
    if (row.read_at === null) read.mutate({ clusters: [row.cluster], ids: [row.id] });
    void navigate({ to: pageOf(row.path), ...inCluster(row) });
  };
  return (
    <PagedTable
      label={t`Notifications`}
      title={t`Your notifications`}
      aside={
        unread > 0 && (
          <Button
            size="xs"
            variant="subtle"
            loading={read.isPending}
            onClick={() => read.mutate({ clusters: names, ids: [] })}
          >
            <Trans>Mark all as read</Trans>
          </Button>
        )
      }
      list={list}
      columns={NOTIFICATION_COLUMNS}
      rowKey={(row) => String(row.id)}
      clusterOf={clusterOf}
      onOpen={open}
      empty={
        <EmptyState icon="bell" title={t`No notifications yet`}>
          <Trans>Events that match your rules appear here.</Trans>
        </EmptyState>
      }
    />
  );
}

/** How many notifications are unread, and the way to them. */
import { t } from "@lingui/core/macro";
import { ActionIcon, Indicator } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCluster } from "@/api/cluster";
import { notificationStatusQuery } from "@/api/notifications";
import { Icon } from "@/components/icon";
import { NotificationToasts } from "./notification-toasts";

const MAX_SHOWN = 99;

export function NotificationBell() {
  const status = useQuery(notificationStatusQuery(useCluster())).data;
  const unread = status?.unread ?? 0;
  return (
    <Indicator
      label={unread > MAX_SHOWN ? `${MAX_SHOWN}+` : unread}
      disabled={unread === 0}
      size={16}
      offset={6}
      color="red.8"
    >
      {status !== undefined && <NotificationToasts unread={unread} />}
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={unread === 0 ? t`Notifications` : t`Notifications: ${unread} unread`}
        renderRoot={(props) => <Link to="/notifications" {...props} />}
      >
        <Icon name="bell" />
      </ActionIcon>
    </Indicator>
  );
}

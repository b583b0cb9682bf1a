/** Shows a notification that arrives while the page is open in a corner, until it is closed or ten seconds have passed. */
import { Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useCluster } from "@/api/cluster";
import { newestNotificationsQuery } from "@/api/notifications";
import type { Notification } from "@/api/types";
import { TextLink } from "@/components/link";
import { eventLook, pageOf } from "@/lib/words/notification-event";

const SHOWN_MS = 10_000;
const MAX_AT_ONCE = 3;

/** `unread` is counted elsewhere: the notifications are read again only when it grows. */
export function NotificationToasts({ unread }: { unread: number }) {
  const newest = useQuery(newestNotificationsQuery(useCluster(), unread)).data;
  const last = useRef<number | undefined>(undefined);
  useEffect(() => {
    if (newest === undefined) return;
    for (const row of news(newest, last.current)) show(row);
    last.current = Math.max(last.current ?? 0, ...newest.map(({ id }) => id));
  }, [newest]);
  return null;
}

/** The unread ones after the last that was known, the oldest first; none while none was known. */
export function news(newest: readonly Notification[], last: number | undefined): Notification[] {
  if (last === undefined) return [];
  return newest
    .filter(({ id, read_at: readAt }) => id > last && readAt === null)
    .slice(0, MAX_AT_ONCE)
    .reverse();
}

function show(row: Notification) {
  notifications.show({
    color: eventLook(row.event).color,
    autoClose: SHOWN_MS,
    title: <TextLink to={pageOf(row.path)}>{row.title}</TextLink>,
    message: (
      <Text span inherit lineClamp={2}>
        {row.message}
      </Text>
    ),
  });
}

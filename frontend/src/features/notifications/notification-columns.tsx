/** The columns of what the user was told. */
import { t } from "@lingui/core/macro";
import { Stack, Text } from "@mantine/core";
import type { Notification } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { ageColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import { eventLook } from "@/lib/words/notification-event";

/** The channels of a notification beside the page. */
export const channelWords = (): Record<string, string> => ({ webhook: t`webhook`, mail: t`mail` });

const stateWords = (): Record<string, string> => ({
  Sending: t`sending`,
  Sent: t`sent`,
  Failed: t`failed`,
});

/** How it went out beside the page: "webhook sent". */
export function deliveryWords({ deliveries }: Pick<Notification, "deliveries">): string {
  return deliveries
    .map(({ channel, state = "" }) => `${channelWords()[channel] ?? channel} ${stateWords()[state] ?? state}`)
    .join(", ");
}

export const NOTIFICATION_COLUMNS: DataColumn<Notification>[] = [
  ageColumn((row) => row.at),
  {
    id: "title",
    header: () => t`Action`,
    cell: ({ row: { original } }) => (
      <Stack gap={0}>
        <Text span inherit fw={original.read_at === null ? 650 : 400}>
          {original.title}
        </Text>
        {original.message !== "" && (
          <Text span fz="xs" c="var(--kw-muted)" truncate>
            {original.message}
          </Text>
        )}
      </Stack>
    ),
  },
  {
    id: "state",
    header: () => t`Read`,
    meta: { width: "98px" },
    cell: ({ row: { original } }) => (
      <BadgeDot
        label={original.read_at === null ? t`Unread` : t`Read`}
        color={original.read_at === null ? eventLook(original.event).color : "gray"}
      />
    ),
  },
  {
    id: "sent",
    header: () => t`Sent by`,
    meta: { width: "130px", hideBelow: 760 },
    cell: ({ row: { original } }) => (
      <span title={original.deliveries.map(({ error }) => error).join(" ")}>{deliveryWords(original)}</span>
    ),
  },
];

/** Whether the numbers on screen are fresh, and since when they are not. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Paper, Text } from "@mantine/core";
import { useNetwork } from "@mantine/hooks";
import { useLive, useReconnect } from "@/api/cluster";
import { Icon } from "@/components/icon";
import { useNow } from "@/lib/clock";
import { formatClock, formatDuration } from "@/lib/time";
import classes from "./shell.module.css";

const labels = () => ({ connecting: t`Connecting`, live: t`Live`, stale: t`Stale`, refused: t`No access` });

export function LiveIndicator() {
  const status = useLive((live) => live.status);
  const time = useLive((live) => live.time);
  const title = time === null ? t`No update yet` : t`Last update ${formatClock(Date.parse(time))}`;
  return (
    <span className={classes.live} data-status={status} role="status" title={title}>
      <span className={classes.dot} />
      <span>{labels()[status]}</span>
    </span>
  );
}

export function StaleBanner() {
  const staleSince = useLive((live) => live.staleSince);
  const status = useLive((live) => live.status);
  const hasData = useLive((live) => live.data !== null);
  const now = useNow();
  const { online } = useNetwork();
  const reconnect = useReconnect();
  if (staleSince === null) return null;
  const since = `${formatClock(staleSince)} (${formatDuration((now - staleSince) / 1000)})`;
  return (
    <Paper className={classes.banner} px="md" py={8} role="alert">
      <Group justify="space-between" gap="xs">
        <Group gap="xs" wrap="nowrap">
          <Icon name="alert" />
          <Text size="sm">
            {status === "refused"
              ? t`The live stream is closed: your session has ended, or this cluster does not exist or you cannot see it.`
              : !online
                ? t`This browser has been offline since about ${since}. Live numbers are greyed out until it is online again.`
                : hasData
                  ? t`Stale since ${since}: no update from the scheduler. Live numbers are greyed out until one arrives.`
                  : t`No live numbers since ${since}: the stream does not answer.`}
          </Text>
        </Group>
        {status !== "refused" && (
          <Button size="compact-sm" variant="default" onClick={reconnect}>
            <Trans>Reconnect now</Trans>
          </Button>
        )}
      </Group>
    </Paper>
  );
}

/** Says that the page shows the past, of when, and how exactly; the ways to the next checkpoints and to now. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, Paper, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { checkpointsQuery, figuresQuery } from "@/api/past/past";
import { Icon } from "@/components/icon";
import { formatLogTime, formatMinute } from "@/lib/time";
import { placeOf, useChooseMoment } from "./choose-moment";
import classes from "./past.module.css";

export function MomentBanner({ cluster, at }: { cluster: string; at: string }) {
  const choose = useChooseMoment();
  const figures = useQuery(figuresQuery(cluster, at));
  const checkpoints = useQuery(checkpointsQuery(cluster)).data ?? [];
  const place = placeOf(checkpoints, Date.parse(at));
  const [before, after] = [checkpoints[place - 1], checkpoints[place + 1]];
  const taken = figures.data?.takenAt;
  return (
    <Paper className={classes.banner} px="md" py={8} role="status">
      <Group justify="space-between" gap="xs">
        <Group gap="xs" wrap="nowrap">
          <Icon name="clock" />
          <div>
            <Text size="sm" fw={600}>
              <Trans>As of {formatLogTime(taken ?? at)}</Trans>
            </Text>
            <Text size="xs">{figures.error?.message ?? exactness(at, figures.data)}</Text>
          </div>
        </Group>
        <Group gap={6} wrap="nowrap">
          <Step label={t`Earlier checkpoint`} icon="back" to={before} />
          <Step label={t`Later checkpoint`} icon="right" to={after} />
          <Button size="compact-sm" variant="default" onClick={() => choose(null)}>
            <Trans>Back to now</Trans>
          </Button>
        </Group>
      </Group>
    </Paper>
  );
}

function exactness(at: string, found: { exact: boolean } | undefined): string {
  if (found === undefined) return t`Reading the checkpoint.`;
  if (found.exact) return t`The state at this moment. Nothing can be changed here.`;
  return t`The last checkpoint before ${formatMinute(at)}: later changes are in the decisions. Nothing can be changed here.`;
}

function Step({ label, icon, to }: { label: string; icon: "back" | "right"; to: number | undefined }) {
  const choose = useChooseMoment();
  return (
    <ActionIcon
      variant="default"
      size="md"
      aria-label={label}
      title={label}
      disabled={to === undefined}
      onClick={() => to !== undefined && choose(to)}
    >
      <Icon name={icon} size={14} />
    </ActionIcon>
  );
}

/** On a page that has no past, while a moment is chosen. */
export function PresentBanner({ at }: { at: string }) {
  const choose = useChooseMoment();
  return (
    <Paper className={classes.banner} px="md" py={8} role="status">
      <Group justify="space-between" gap="xs">
        <Text size="sm">
          <Trans>This page shows the current state; other pages show the state of {formatMinute(at)}.</Trans>
        </Text>
        <Button size="compact-sm" variant="default" onClick={() => choose(null)}>
          <Trans>Back to now</Trans>
        </Button>
      </Group>
    </Paper>
  );
}

/** Chooses the moment that the pages show: a time, or a checkpoint on the slider. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, Popover, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { checkpointsQuery } from "@/api/past/past";
import { Icon } from "@/components/icon";
import { formatMinute, zoneName } from "@/lib/time";
import { toLocalInput } from "@/lib/url/time-range";
import { useChooseMoment } from "./choose-moment";
import { MomentSlider } from "./moment-slider";

export function LookBack({ cluster, at }: { cluster: string; at: string | undefined }) {
  const [opened, setOpened] = useState(false);
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" width={320} trapFocus withinPortal>
      <Popover.Target>
        <ActionIcon
          variant={at === undefined ? "subtle" : "light"}
          color={at === undefined ? "gray" : "orange"}
          size="lg"
          aria-label={t`Look back`}
          title={t`Show an earlier state`}
          onClick={() => setOpened(!opened)}
        >
          <Icon name="clock" />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown>
        {opened && <Choice cluster={cluster} at={at} onChosen={() => setOpened(false)} />}
      </Popover.Dropdown>
    </Popover>
  );
}

function Choice({
  cluster,
  at,
  onChosen,
}: {
  cluster: string;
  at: string | undefined;
  onChosen: () => void;
}) {
  const checkpoints = useQuery(checkpointsQuery(cluster)).data;
  const choose = useChooseMoment();
  const [text, setText] = useState(at === undefined ? "" : toLocalInput(at));
  const [first, last] = [checkpoints?.[0], checkpoints?.at(-1)];
  const minute = Date.parse(text);
  // The end of the minute, or the checkpoint within it would be a later one.
  const asked = Math.min(minute + 59_999, Date.now());
  const mistake =
    text === "" || first === undefined
      ? null
      : Number.isNaN(minute)
        ? t`Choose a day and a time.`
        : asked < first
          ? t`The earliest checkpoint is from ${formatMinute(new Date(first).toISOString())}.`
          : minute > Date.now()
            ? t`Choose a time in the past.`
            : null;
  if (checkpoints !== undefined && last === undefined) {
    return (
      <Text size="sm">
        <Trans>No checkpoint is kept yet. The first one is taken within minutes.</Trans>
      </Text>
    );
  }
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        <Trans>Show an earlier state</Trans>
      </Text>
      <MomentSlider checkpoints={checkpoints ?? []} at={at} />
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <TextInput
          type="datetime-local"
          size="xs"
          flex={1}
          label={t`Time (${zoneName()})`}
          value={text}
          error={mistake}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Button
          size="xs"
          disabled={text === "" || mistake !== null || first === undefined}
          onClick={() => {
            choose(asked);
            onChosen();
          }}
        >
          <Trans>Show</Trans>
        </Button>
      </Group>
      {at !== undefined && (
        <Button
          size="xs"
          variant="default"
          onClick={() => {
            choose(null);
            onChosen();
          }}
        >
          <Trans>Back to now</Trans>
        </Button>
      )}
    </Stack>
  );
}

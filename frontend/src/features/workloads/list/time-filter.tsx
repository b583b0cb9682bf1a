/** Workloads of a range of time: the last hours or days, or from one time to another. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, NativeSelect, Popover, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { Icon } from "@/components/icon";
import { formatTimestamp } from "@/lib/time";
import {
  RECENT,
  type Recent,
  TIME_STEPS,
  type TimeRange,
  type TimeStep,
  toLocalInput,
} from "@/lib/url/time-range";

const stepWords = (): Record<TimeStep, string> => ({
  submitted: t`Submitted`,
  admitted: t`Admitted`,
  finished: t`Finished`,
});

const recentWords = (): Record<Recent, string> => ({
  "1h": t`Last hour`,
  "24h": t`Last 24 hours`,
  "7d": t`Last 7 days`,
});

function rangeWords({ last, since, until }: TimeRange): string {
  if (last !== undefined) return recentWords()[last];
  const from = since === undefined ? "" : formatTimestamp(since);
  const to = until === undefined ? "" : formatTimestamp(until);
  if (to === "") return t`from ${from}`;
  return from === "" ? t`before ${to}` : t`${from} to ${to}`;
}

export interface TimeFilterProps {
  /** Empty while nothing is narrowed. */
  range: TimeRange;
  onChange: (range: TimeRange) => void;
}

export function TimeFilter({ range, onChange }: TimeFilterProps) {
  const [opened, setOpened] = useState(false);
  const narrowed = Object.keys(range).length > 0;
  const step = stepWords()[range.time ?? "submitted"];
  const words = rangeWords(range);
  return (
    <Group gap={4}>
      <Popover opened={opened} onChange={setOpened} position="bottom-start" width={280} trapFocus>
        <Popover.Target>
          <Button
            variant="default"
            size="xs"
            leftSection={<Icon name="clock" size={14} />}
            onClick={() => setOpened(!opened)}
          >
            <Trans>Time</Trans>
          </Button>
        </Popover.Target>
        <Popover.Dropdown>
          <TimeChoice
            range={range}
            onChange={(chosen) => {
              onChange(chosen);
              setOpened(false);
            }}
          />
        </Popover.Dropdown>
      </Popover>
      {narrowed && (
        <Button
          variant="light"
          size="xs"
          radius="xl"
          aria-label={t`Remove the filter ${step}: ${words}`}
          rightSection={<Icon name="close" size={13} />}
          onClick={() => onChange({})}
        >
          <Trans>
            {step}: {words}
          </Trans>
        </Button>
      )}
    </Group>
  );
}

/** What is typed until it is applied. */
function TimeChoice({ range, onChange }: TimeFilterProps) {
  const [time, setTime] = useState<TimeStep>(range.time ?? "submitted");
  const [since, setSince] = useState(toLocalInput(range.since));
  const [until, setUntil] = useState(toLocalInput(range.until));
  const ofStep = time === "submitted" ? {} : { time };
  // Both are written alike, so that their texts compare as their times do.
  const reversed = since !== "" && until !== "" && since >= until;
  return (
    <Stack gap="xs">
      <NativeSelect
        label={t`Which time`}
        size="xs"
        value={time}
        data={TIME_STEPS.map((value) => ({ value, label: stepWords()[value] }))}
        onChange={(event) =>
          setTime(TIME_STEPS.find((each) => each === event.currentTarget.value) ?? "submitted")
        }
      />
      <Group gap={4}>
        {(Object.keys(RECENT) as Recent[]).map((last) => (
          <Button
            key={last}
            size="compact-xs"
            variant={range.last === last ? "filled" : "default"}
            onClick={() => onChange({ ...ofStep, last })}
          >
            {recentWords()[last]}
          </Button>
        ))}
      </Group>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onChange({
            ...ofStep,
            ...(since === "" ? {} : { since: new Date(since).toISOString() }),
            ...(until === "" ? {} : { until: new Date(until).toISOString() }),
          });
        }}
      >
        <Stack gap="xs">
          <TextInput
            type="datetime-local"
            size="xs"
            label={t`Beginning`}
            value={since}
            onChange={(event) => setSince(event.currentTarget.value)}
          />
          <TextInput
            type="datetime-local"
            size="xs"
            label={t`End`}
            value={until}
            error={reversed ? t`The end must be after the beginning.` : null}
            onChange={(event) => setUntil(event.currentTarget.value)}
          />
          <Button type="submit" size="xs" disabled={reversed || (since === "" && until === "")}>
            <Trans>Apply</Trans>
          </Button>
        </Stack>
      </form>
    </Stack>
  );
}

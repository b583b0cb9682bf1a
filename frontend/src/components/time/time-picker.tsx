/** Chooses the range of time that a page shows: one that ends now, or from one time to another in the reader's zone. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, Popover, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Icon } from "@/components/icon";
import { formatMinute, zoneName } from "@/lib/time";
import { ALL_RANGES, isEmpty, type Range, type TimeRange, toLocalInput } from "@/lib/url/time-range";

const lastWords = (): Record<Range, string> => ({
  "15m": t`Last 15 minutes`,
  "1h": t`Last hour`,
  "6h": t`Last 6 hours`,
  "24h": t`Last 24 hours`,
  "7d": t`Last 7 days`,
  "30d": t`Last 30 days`,
  "90d": t`Last 90 days`,
  "365d": t`Last 365 days`,
});

/** "Last hour", "26 Nov 14:00 to 14:05"; any time for an empty range. */
export function rangeWords({ last, since, until }: TimeRange): string {
  if (last !== undefined) return lastWords()[last];
  if (since === undefined && until === undefined) return t`Any time`;
  const from = since === undefined ? "" : formatMinute(since);
  const to = until === undefined ? "" : formatMinute(until, since);
  if (to === "") return t`from ${from}`;
  return from === "" ? t`before ${to}` : t`${from} to ${to}`;
}

export interface TimePickerProps {
  /** Empty for the default. */
  range: TimeRange;
  onChange: (range: TimeRange) => void;
  /** The meaning of an empty range; any time by default. */
  fallback?: Range;
  /** The ranges on offer. */
  ranges?: readonly Range[];
  /** The name of the time, before the range in the button's words. */
  prefix?: string;
  /** Above the ranges. */
  children?: ReactNode;
}

export function TimePicker({
  range,
  onChange,
  fallback,
  ranges = ALL_RANGES,
  prefix,
  children,
}: TimePickerProps) {
  const [opened, setOpened] = useState(false);
  const shown = isEmpty(range) && fallback !== undefined ? { last: fallback } : range;
  const words =
    prefix === undefined || isEmpty(range) ? rangeWords(shown) : `${prefix}: ${rangeWords(shown)}`;
  const choose = (chosen: TimeRange) => {
    onChange(chosen.last !== undefined && chosen.last === fallback ? {} : chosen);
    setOpened(false);
  };
  return (
    <Group gap={2} wrap="nowrap">
      <Popover opened={opened} onChange={setOpened} position="bottom-end" width={300} trapFocus>
        <Popover.Target>
          <Button
            variant={isEmpty(range) ? "default" : "light"}
            size="xs"
            leftSection={<Icon name="clock" size={14} />}
            aria-label={t`Time: ${words}`}
            onClick={() => setOpened(!opened)}
          >
            {words}
          </Button>
        </Popover.Target>
        <Popover.Dropdown>
          <Stack gap="xs">
            {children}
            <SimpleGrid cols={2} spacing={4} verticalSpacing={4}>
              {ranges.map((last) => (
                <Button
                  key={last}
                  size="compact-xs"
                  variant={shown.last === last ? "filled" : "default"}
                  onClick={() => choose({ last })}
                >
                  {lastWords()[last]}
                </Button>
              ))}
            </SimpleGrid>
            <FromTo range={range} onChange={choose} />
          </Stack>
        </Popover.Dropdown>
      </Popover>
      {!isEmpty(range) && (
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          aria-label={t`Remove ${words}`}
          title={fallback === undefined ? rangeWords({}) : rangeWords({ last: fallback })}
          onClick={() => onChange({})}
        >
          <Icon name="close" size={13} />
        </ActionIcon>
      )}
    </Group>
  );
}

/** The text of a range, until it is applied. */
function FromTo({ range, onChange }: Pick<TimePickerProps, "range" | "onChange">) {
  const [since, setSince] = useState(toLocalInput(range.since));
  const [until, setUntil] = useState(toLocalInput(range.until));
  // Both are written alike, so that their texts compare as their times do.
  const reversed = since !== "" && until !== "" && since >= until;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onChange({
          ...(since === "" ? {} : { since: new Date(since).toISOString() }),
          ...(until === "" ? {} : { until: new Date(until).toISOString() }),
        });
      }}
    >
      <Stack gap="xs">
        <TextInput
          type="datetime-local"
          size="xs"
          label={t`From`}
          value={since}
          onChange={(event) => setSince(event.currentTarget.value)}
        />
        <TextInput
          type="datetime-local"
          size="xs"
          label={t`To`}
          value={until}
          error={reversed ? t`The end must be after the beginning.` : null}
          onChange={(event) => setUntil(event.currentTarget.value)}
        />
        <Text fz="xs" c="var(--kw-muted)">
          <Trans>Times are in the zone {zoneName()}.</Trans>
        </Text>
        <Button type="submit" size="xs" disabled={reversed || (since === "" && until === "")}>
          <Trans>Apply</Trans>
        </Button>
      </Stack>
    </form>
  );
}

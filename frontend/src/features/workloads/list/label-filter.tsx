/** Workloads by their labels: each requirement is a key, how it is compared, and with what. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, NativeSelect, Popover, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { Icon } from "@/components/icon";
import {
  joinSelector,
  MATCHES,
  type Match,
  requirement,
  splitSelector,
  takesValue,
} from "@/lib/list/label-selector";

const matchWords = (): Record<Match, string> => ({
  has: t`exists`,
  lacks: t`does not exist`,
  is: t`is`,
  "is-not": t`is not`,
  starts: t`starts with`,
  contains: t`contains`,
  "one-of": t`is one of`,
  "none-of": t`is not one of`,
});

export interface LabelFilterProps {
  /** A label selector. */
  value: string | undefined;
  onChange: (selector: string) => void;
}

export function LabelFilter({ value, onChange }: LabelFilterProps) {
  const [opened, setOpened] = useState(false);
  const parts = splitSelector(value);
  return (
    <Group gap={4}>
      <Popover opened={opened} onChange={setOpened} position="bottom-start" width={260} trapFocus>
        <Popover.Target>
          <Button
            variant="default"
            size="xs"
            leftSection={<Icon name="filter" size={14} />}
            onClick={() => setOpened(!opened)}
          >
            <Trans>Label</Trans>
          </Button>
        </Popover.Target>
        <Popover.Dropdown>
          <Requirement
            onAdd={(more) => {
              onChange(joinSelector(value, more));
              setOpened(false);
            }}
          />
        </Popover.Dropdown>
      </Popover>
      {parts.map((part) => (
        <Button
          key={part}
          variant="light"
          size="xs"
          radius="xl"
          maw={260}
          aria-label={t`Remove the label filter ${part}`}
          rightSection={<Icon name="close" size={13} />}
          onClick={() => onChange(parts.filter((each) => each !== part).join(","))}
        >
          {part}
        </Button>
      ))}
    </Group>
  );
}

function Requirement({ onAdd }: { onAdd: (requirement: string) => void }) {
  const [key, setKey] = useState("");
  const [match, setMatch] = useState<Match>("is");
  const [value, setValue] = useState("");
  const text = requirement(key.trim(), match, value.trim());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (text !== undefined) onAdd(text);
      }}
    >
      <Stack gap="xs">
        <TextInput
          size="xs"
          label={t`Key`}
          placeholder="example.com/team"
          spellCheck={false}
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
        />
        <NativeSelect
          size="xs"
          label={t`Comparison`}
          value={match}
          data={MATCHES.map((each) => ({ value: each, label: matchWords()[each] }))}
          onChange={(event) => setMatch(MATCHES.find((each) => each === event.currentTarget.value) ?? "is")}
        />
        {takesValue(match) && (
          <TextInput
            size="xs"
            label={t`Value`}
            {...(match === "one-of" || match === "none-of" ? { placeholder: t`comma-separated` } : {})}
            spellCheck={false}
            value={value}
            onChange={(event) => setValue(event.currentTarget.value)}
          />
        )}
        <Button type="submit" size="xs" disabled={text === undefined}>
          <Trans>Apply</Trans>
        </Button>
      </Stack>
    </form>
  );
}

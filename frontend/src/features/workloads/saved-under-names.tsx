/** A button with what the reader saved under names: each is opened or deleted, and the present one is saved. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, Popover, Skeleton, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Icon, type IconName } from "@/components/icon";

interface Saved {
  id: number;
  name: string;
}

/** A change that the account makes; its error stays until the next one. */
interface Change<Input> {
  mutate: (input: Input, options?: { onSuccess: () => void }) => void;
  isPending: boolean;
  error: Error | null;
}

export interface SavedUnderNamesProps<Row extends Saved, Save> {
  label: string;
  icon: IconName;
  empty: ReactNode;
  /** The label of the field for a new name. */
  nameLabel: string;
  deleteLabel: (name: string) => string;
  opened: boolean;
  onOpened: (opened: boolean) => void;
  query: { data: Row[] | undefined; error: Error | null; isPending: boolean };
  saving: Change<Save>;
  deleting: Change<Row>;
  /** The value to save under a name; `before` is the present one, and is replaced. */
  present: (name: string, before: Row | undefined) => Save;
  onOpen: (row: Row) => void;
}

export function SavedUnderNames<Row extends Saved, Save>(props: SavedUnderNamesProps<Row, Save>) {
  const { query, saving, deleting, opened, onOpened } = props;
  const rows = query.data ?? [];
  const error = query.error ?? saving.error ?? deleting.error;
  return (
    <Popover opened={opened} onChange={onOpened} position="bottom-end" width={260} trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          size="xs"
          leftSection={<Icon name={props.icon} size={14} />}
          onClick={() => onOpened(!opened)}
        >
          {props.label}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          {error !== null && (
            <Text size="xs" role="alert" c="var(--mantine-color-error)">
              {error.message}
            </Text>
          )}
          {query.isPending && <Skeleton height={14} />}
          {rows.length === 0 && !query.isPending && query.error === null && (
            <Text size="xs" c="var(--kw-muted)">
              {props.empty}
            </Text>
          )}
          {rows.map((row) => (
            <Group key={row.id} justify="space-between" wrap="nowrap" gap={4}>
              <Button
                variant="subtle"
                size="compact-sm"
                onClick={() => {
                  props.onOpen(row);
                  onOpened(false);
                }}
              >
                {row.name}
              </Button>
              <ActionIcon
                variant="subtle"
                color="gray"
                size="sm"
                aria-label={props.deleteLabel(row.name)}
                disabled={deleting.isPending}
                onClick={() => deleting.mutate(row)}
              >
                <Icon name="close" size={13} />
              </ActionIcon>
            </Group>
          ))}
          <NewName
            label={props.nameLabel}
            isPending={query.isPending || saving.isPending}
            onSave={(name, onSuccess) =>
              saving.mutate(
                props.present(
                  name,
                  rows.find((row) => row.name === name),
                ),
                { onSuccess },
              )
            }
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

interface NewNameProps {
  label: string;
  isPending: boolean;
  onSave: (name: string, onSuccess: () => void) => void;
}

/** The field for a name. The button is no submit button: the popover may stand in a form. */
function NewName({ label, isPending, onSave }: NewNameProps) {
  const [name, setName] = useState("");
  const wanted = name.trim();
  const save = () => {
    if (wanted !== "" && !isPending) onSave(wanted, () => setName(""));
  };
  return (
    <Group gap={4} wrap="nowrap">
      <TextInput
        size="xs"
        flex={1}
        aria-label={label}
        placeholder={t`Name`}
        maxLength={60}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          save();
        }}
      />
      <Button size="xs" flex="none" disabled={wanted === "" || isPending} onClick={save}>
        <Trans>Save</Trans>
      </Button>
    </Group>
  );
}

/** The choice of columns: the list's own, fields that it hides at first, and values of labels and annotations. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Checkbox, Group, NativeSelect, Popover, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { Icon } from "@/components/icon";
import { type AddedColumn, isKey, MAX_ADDED, OWN_COLUMNS, parseColumns } from "@/lib/list/columns";
import type { WorkloadView } from "@/lib/url/workload-filters";
import { addedWords, CHOOSABLE, hiddenColumns } from "./workload-columns";

export interface ColumnChooserProps {
  view: WorkloadView;
  onView: (view: WorkloadView) => void;
}

export function ColumnChooser({ view, onView }: ColumnChooserProps) {
  const hidden = hiddenColumns(view);
  const added = parseColumns(view.columns);
  const { hide: _hide, columns: _columns, widths: _widths, ...others } = view;
  const isChanged = hidden.length + added.length > 0 || view.widths !== undefined;
  const show = (hide: readonly string[], columns: readonly AddedColumn[]) =>
    onView({
      ...others,
      ...(view.widths === undefined ? {} : { widths: view.widths }),
      ...(hide.length === 0 ? {} : { hide: hide.join(",") }),
      ...(columns.length === 0 ? {} : { columns: columns.join(",") }),
    });
  const add = (column: AddedColumn) => show(hidden, [...added, column]);
  const remove = (column: AddedColumn) =>
    show(
      hidden,
      added.filter((each) => each !== column),
    );
  const isFull = added.length >= MAX_ADDED;
  return (
    <Popover position="bottom-end" width={340} trapFocus>
      <Popover.Target>
        <Button variant="default" size="xs" leftSection={<Icon name="table" size={14} />}>
          <Trans>Columns</Trans>
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap={8}>
          {CHOOSABLE.map(({ id, label }) => (
            <Checkbox
              key={id}
              size="xs"
              label={label()}
              checked={!hidden.includes(id)}
              onChange={(event) =>
                show(
                  event.currentTarget.checked ? hidden.filter((each) => each !== id) : [...hidden, id],
                  added,
                )
              }
            />
          ))}
          {OWN_COLUMNS.map((column) => (
            <Checkbox
              key={column}
              size="xs"
              label={addedWords(column)}
              checked={added.includes(column)}
              disabled={isFull && !added.includes(column)}
              onChange={(event) => (event.currentTarget.checked ? add(column) : remove(column))}
            />
          ))}
          {added
            .filter((column) => column.includes(":"))
            .map((column) => (
              <Group key={column} justify="space-between" wrap="nowrap" gap={4} fz="xs">
                <span style={{ overflowWrap: "anywhere" }}>{addedWords(column)}</span>
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  size="sm"
                  aria-label={t`Remove the column ${addedWords(column)}`}
                  onClick={() => remove(column)}
                >
                  <Icon name="close" size={13} />
                </ActionIcon>
              </Group>
            ))}
          <KeyForm disabled={isFull} onAdd={add} />
          {isChanged && (
            <Button size="compact-xs" variant="subtle" onClick={() => onView(others)}>
              <Trans>Reset columns and widths</Trans>
            </Button>
          )}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function KeyForm({ disabled, onAdd }: { disabled: boolean; onAdd: (column: AddedColumn) => void }) {
  const [kind, setKind] = useState<"label" | "annotation">("label");
  const [key, setKey] = useState("");
  const wrong = key.trim() !== "" && !isKey(key.trim());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isKey(key.trim())) return;
        onAdd(`${kind}:${key.trim()}`);
        setKey("");
      }}
    >
      <Group gap={4} wrap="nowrap" align="flex-start">
        <NativeSelect
          size="xs"
          w={110}
          style={{ flex: "none" }}
          aria-label={t`Column type`}
          value={kind}
          data={[
            { value: "label", label: t`Label` },
            { value: "annotation", label: t`Annotation` },
          ]}
          onChange={(event) => setKind(event.currentTarget.value === "annotation" ? "annotation" : "label")}
        />
        <TextInput
          size="xs"
          aria-label={t`Key of the column`}
          placeholder={t`Key`}
          spellCheck={false}
          value={key}
          disabled={disabled}
          error={wrong ? t`Not a valid key` : null}
          onChange={(event) => setKey(event.currentTarget.value)}
        />
        <Button
          type="submit"
          size="xs"
          style={{ flex: "none" }}
          disabled={disabled || wrong || key.trim() === ""}
        >
          <Trans>Add</Trans>
        </Button>
      </Group>
    </form>
  );
}

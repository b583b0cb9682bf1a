/** The views that the reader saved under a name: filters, groups, order and columns at once. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, Popover, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Icon } from "@/components/icon";
import { forgetView, readViews, saveView } from "@/lib/list/saved-views";
import {
  parseWorkloadFilters,
  parseWorkloadView,
  type WorkloadFilters,
  type WorkloadSearch,
  type WorkloadView,
} from "@/lib/url/workload-filters";

export interface SavedViewsProps {
  present: WorkloadSearch;
  onOpen: (filters: WorkloadFilters, view: WorkloadView) => void;
}

export function SavedViews({ present, onOpen }: SavedViewsProps) {
  const [opened, setOpened] = useState(false);
  const [views, setViews] = useState(() => readViews(window.localStorage));
  const [name, setName] = useState("");
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" width={260} trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          size="xs"
          leftSection={<Icon name="filter" size={14} />}
          onClick={() => setOpened(!opened)}
        >
          <Trans>Views</Trans>
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          {views.length === 0 && (
            <Text size="xs" c="var(--kw-muted)">
              <Trans>No saved views yet. Save the present one under a name.</Trans>
            </Text>
          )}
          {views.map((view) => (
            <Group key={view.name} justify="space-between" wrap="nowrap" gap={4}>
              <Button
                variant="subtle"
                size="compact-sm"
                onClick={() => {
                  onOpen(parseWorkloadFilters(view.search), parseWorkloadView(view.search));
                  setOpened(false);
                }}
              >
                {view.name}
              </Button>
              <ActionIcon
                variant="subtle"
                color="gray"
                size="sm"
                aria-label={t`Delete the view ${view.name}`}
                onClick={() => setViews(forgetView(window.localStorage, view.name))}
              >
                <Icon name="close" size={13} />
              </ActionIcon>
            </Group>
          ))}
          <form
            onSubmit={(event) => {
              event.preventDefault();
              if (name.trim() === "") return;
              setViews(saveView(window.localStorage, { name: name.trim(), search: { ...present } }));
              setName("");
            }}
          >
            <Group gap={4} wrap="nowrap">
              <TextInput
                size="xs"
                aria-label={t`Name of the view`}
                placeholder={t`Name`}
                maxLength={60}
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
              />
              <Button type="submit" size="xs" disabled={name.trim() === ""}>
                <Trans>Save</Trans>
              </Button>
            </Group>
          </form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

/** The views that the reader saved under a name, in the account: filters, groups, order and columns at once. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Group, Popover, Skeleton, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { savedViewsQuery, useDeleteView, useSaveView } from "@/api/account/saved-views";
import { Icon } from "@/components/icon";
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
  const { data: views = [], error: unread, isPending } = useQuery({ ...savedViewsQuery(), enabled: opened });
  const saving = useSaveView();
  const deleting = useDeleteView();
  const error = unread ?? saving.error ?? deleting.error;
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
          {error !== null && (
            <Text size="xs" role="alert" c="var(--mantine-color-error)">
              {error.message}
            </Text>
          )}
          {isPending && <Skeleton height={14} />}
          {views.length === 0 && !isPending && unread === null && (
            <Text size="xs" c="var(--kw-muted)">
              <Trans>No saved views yet. Save the current one under a name.</Trans>
            </Text>
          )}
          {views.map((view) => (
            <Group key={view.id} justify="space-between" wrap="nowrap" gap={4}>
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
                disabled={deleting.isPending}
                onClick={() => deleting.mutate(view)}
              >
                <Icon name="close" size={13} />
              </ActionIcon>
            </Group>
          ))}
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const wanted = name.trim();
              if (wanted === "") return;
              const before = views.find((view) => view.name === wanted);
              saving.mutate(
                { name: wanted, search: { ...present }, before },
                { onSuccess: () => setName("") },
              );
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
              <Button type="submit" size="xs" disabled={name.trim() === "" || isPending || saving.isPending}>
                <Trans>Save</Trans>
              </Button>
            </Group>
          </form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

/** Ctrl-K: one field that finds workloads, queues, nodes, devices, users, pages and actions. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Combobox, Group, Kbd, Loader, Modal, Text, TextInput, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useRouter } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useState } from "react";
import type { Session } from "@/api/types";
import { Icon } from "@/components/icon";
import { type Entry, type Target, useFound } from "./find";
import type { Page } from "./pages";
import classes from "./shell.module.css";

const TYPING_MS = 150;

export interface FindDialogProps {
  session: Session;
  pages: readonly Page[];
  onClose: () => void;
}

export function FindDialog({ session, pages, onClose }: FindDialogProps) {
  const [text, setText] = useState("");
  const [settled] = useDebouncedValue(text, TYPING_MS);
  const { groups, searching } = useFound(session, pages, settled);
  const entries = groups.flatMap((group) => group.entries);
  const combobox = useCombobox({ opened: true });
  const router = useRouter();
  const { selectFirstOption } = combobox;
  const shown = entries.map(({ id }) => id).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new list of entries begins with its first one selected
  useEffect(() => {
    selectFirstOption();
  }, [shown]);

  const hrefOf = (target: Target) => router.buildLocation(target as never).href;
  const open = (entry: Entry | undefined, inNewTab: boolean) => {
    if (entry === undefined) return;
    const href = hrefOf(entry.target);
    if (inNewTab) window.open(router.history.createHref(href), "_blank", "noopener");
    else router.history.push(href);
    onClose();
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    open(entries[combobox.getSelectedOptionIndex()], true);
  };
  return (
    <Modal opened onClose={onClose} title={t`Find`} size="lg">
      <Combobox
        store={combobox}
        onOptionSubmit={(id) =>
          open(
            entries.find((entry) => entry.id === id),
            false,
          )
        }
      >
        <Combobox.EventsTarget>
          <TextInput
            data-autofocus
            size="md"
            aria-label={t`Find`}
            placeholder={t`Find a workload, queue, node, GPU, user, page or action`}
            leftSection={<Icon name="search" size={16} />}
            rightSection={searching ? <Loader size="xs" /> : null}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            onKeyDownCapture={pressed}
          />
        </Combobox.EventsTarget>
        <Combobox.Options
          tabIndex={0}
          mt="sm"
          mah="min(60dvh, 32rem)"
          style={{ overflowY: "auto" }}
          aria-label={t`Found`}
        >
          {groups.map(({ title, entries: found }) => (
            <Combobox.Group key={title} label={title}>
              {found.map((entry) => (
                <Combobox.Option key={entry.id} value={entry.id}>
                  <Group gap="sm" wrap="nowrap">
                    <Icon name={entry.icon} size={16} />
                    <Text span fz="sm" truncate style={{ flex: 1 }}>
                      {entry.label}
                    </Text>
                    <Text span fz="xs" className={classes.note}>
                      {entry.note}
                    </Text>
                  </Group>
                </Combobox.Option>
              ))}
            </Combobox.Group>
          ))}
          {entries.length === 0 && (
            <Combobox.Empty>{searching ? t`Searching …` : t`No match`}</Combobox.Empty>
          )}
        </Combobox.Options>
      </Combobox>
      <Text fz="xs" c="var(--kw-muted)" mt="xs">
        <Trans>
          <Kbd size="xs">↑</Kbd> <Kbd size="xs">↓</Kbd> move, <Kbd size="xs">Enter</Kbd> opens,{" "}
          <Kbd size="xs">Ctrl</Kbd> <Kbd size="xs">Enter</Kbd> opens in a new tab
        </Trans>
      </Text>
    </Modal>
  );
}

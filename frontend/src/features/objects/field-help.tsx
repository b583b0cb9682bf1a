/** The help of a field behind a button beside it: the text is the server's, as `kubectl explain` shows it. */
import { t } from "@lingui/core/macro";
import { ActionIcon, Group, Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import { Icon } from "@/components/icon";
import classes from "./objects.module.css";

export function FieldHelp({ label, help }: { label: string; help: string }) {
  return (
    <Tooltip
      label={help}
      multiline
      w={300}
      fz="xs"
      events={{ hover: true, focus: true, touch: true }}
      position="top-end"
      withinPortal
    >
      <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t`Help on ${label}`}>
        <Icon name="info" size={14} />
      </ActionIcon>
    </Tooltip>
  );
}

/** Puts the help beside an input. Without help the input has the same place: help that arrives leaves it the focus. */
export function besideInput(
  label: string,
  help: string,
): { inputContainer: (input: ReactNode) => ReactNode } {
  return {
    inputContainer: (input) => (
      <Group gap={2} wrap="nowrap" align="flex-start">
        <div className={classes.helped}>{input}</div>
        {help !== "" && <FieldHelp label={label} help={help} />}
      </Group>
    ),
  };
}

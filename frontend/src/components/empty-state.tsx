/** The text of an empty list: why it is empty, and the next step. */
import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon";

export interface EmptyStateProps {
  icon: IconName;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

export function EmptyState({ icon, title, children, action }: EmptyStateProps) {
  return (
    <Stack align="center" gap={6} py={48} px="md" ta="center" c="var(--kw-muted)">
      <Icon name={icon} size={32} />
      <Text fw={600} c="var(--mantine-color-text)">
        {title}
      </Text>
      {children !== undefined && (
        <Text size="sm" maw={460}>
          {children}
        </Text>
      )}
      {action}
    </Stack>
  );
}

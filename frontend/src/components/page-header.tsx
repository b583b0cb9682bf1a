/** The top of a page: its title, a sentence or facts, and its actions. */
import { Group, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

export interface PageHeaderProps {
  title: ReactNode;
  /** Above the title: the way back. */
  trail?: ReactNode;
  facts?: ReactNode;
  actions?: ReactNode;
}

export function PageHeader({ title, trail, facts, actions }: PageHeaderProps) {
  return (
    <Group justify="space-between" align="flex-end" gap="sm" mb={{ base: 6, xs: "md" }}>
      {typeof title === "string" && <title>{`${title} · kueueweb`}</title>}
      <Stack gap={4} miw={0} style={{ flex: "1 1 min(420px, 55%)" }}>
        {trail}
        <Title order={1} fz={22} style={{ overflowWrap: "anywhere" }}>
          {title}
        </Title>
        {typeof facts === "string" ? (
          <Text fz="sm" c="var(--kw-muted)">
            {facts}
          </Text>
        ) : (
          facts
        )}
      </Stack>
      {actions !== undefined && <Group gap="xs">{actions}</Group>}
    </Group>
  );
}

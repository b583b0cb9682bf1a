/** The plans that the reader saved, and saved plans of other users that the reader may open. */
import { t } from "@lingui/core/macro";
import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { savedPlansQuery } from "@/api/studio/questions";
import { Ago } from "@/components/ago";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";

export function SavedPlans({ onOpen }: { onOpen: (id: number) => void }) {
  const saved = useQuery(savedPlansQuery(useCluster()));
  if (saved.data?.length === 0) return null;
  return (
    <Panel title={t`Saved plans`}>
      <QueryError title={t`Saved plans cannot be shown`} query={saved} />
      <Stack gap={4}>
        {saved.data?.map(({ id, name, asked_by, created_at, applied_at }) => (
          <Group key={id} gap="xs" justify="space-between">
            <Button variant="subtle" size="compact-sm" onClick={() => onOpen(id)}>
              {name}
            </Button>
            <Text size="sm" c="var(--kw-muted)">
              {asked_by}, <Ago time={created_at} />
              {applied_at !== null && t`, applied`}
            </Text>
          </Group>
        ))}
      </Stack>
    </Panel>
  );
}

/** What can be done to all selected workloads at once. */
import { Button, Group, Modal, Paper, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import type { Workload } from "@/api/types";
import { type BulkAction, useBulkAction } from "@/api/workloads";
import { ErrorState } from "@/components/error-state";
import { Icon } from "@/components/icon";
import { formatCount } from "@/lib/quantity";
import { faultLines } from "@/lib/refusal";
import { ACTION_WORDS } from "./action-words";
import classes from "./workloads.module.css";

const ACTIONS: BulkAction[] = ["hold", "release", "cancel"];

export function BulkBar({ selected, onClear }: { selected: Workload[]; onClear: () => void }) {
  const [asked, setAsked] = useState<BulkAction | null>(null);
  const action = useBulkAction(useCluster());
  const close = () => {
    setAsked(null);
    action.reset();
  };
  if (selected.length === 0) return null;
  const count = `${formatCount(selected.length)} ${selected.length === 1 ? "workload" : "workloads"}`;
  return (
    <Paper className={classes.bulk} role="toolbar" aria-label={`${count} selected`}>
      <Group gap="xs">
        <Text fz="sm" fw={600} mr="auto" className="kw-number">
          {count} selected
        </Text>
        {ACTIONS.map((kind) => (
          <Button
            key={kind}
            size="xs"
            variant={kind === "cancel" ? "light" : "default"}
            {...(kind === "cancel" ? { color: "red" } : {})}
            leftSection={<Icon name={ACTION_WORDS[kind].icon} size={14} />}
            onClick={() => setAsked(kind)}
          >
            {ACTION_WORDS[kind].label}
          </Button>
        ))}
        <Button size="xs" variant="subtle" onClick={onClear}>
          Clear
        </Button>
      </Group>
      <Modal
        opened={asked !== null}
        onClose={close}
        title={asked === null ? "" : `${ACTION_WORDS[asked].label} ${count}?`}
      >
        {asked !== null && (
          <Stack>
            <Text size="sm">{ACTION_WORDS[asked].consequence}</Text>
            <Text size="sm" c="var(--kw-muted)">
              Workloads to which it does not apply are passed over.
            </Text>
            {action.error !== null && (
              <ErrorState
                title="It was not done"
                message={action.error.message}
                details={faultLines(action.error instanceof ApiError ? action.error.errors : [])}
              />
            )}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Back
              </Button>
              <Button
                {...(asked === "cancel" ? { color: "red" } : {})}
                loading={action.isPending}
                data-autofocus
                onClick={() =>
                  action.mutate(
                    { action: asked, workloads: selected },
                    {
                      onSuccess: ({ changed }) => {
                        notifications.show({
                          color: "teal",
                          title: ACTION_WORDS[asked].done,
                          message: `${formatCount(changed.length)} of ${count}`,
                        });
                        close();
                        onClear();
                      },
                    },
                  )
                }
              >
                {ACTION_WORDS[asked].label}
              </Button>
            </Group>
          </Stack>
        )}
      </Modal>
    </Paper>
  );
}

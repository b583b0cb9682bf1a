/** What can be done to all selected workloads at once. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Paper, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import type { Workload } from "@/api/types";
import { useBulkAction } from "@/api/workloads";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Icon } from "@/components/icon";
import { formatCount } from "@/lib/quantity";
import { faultLines } from "@/lib/words/refusal";
import { type ActionKind, actionWords } from "../actions/action-words";
import { PriorityClassSelect } from "../actions/priority-class-select";
import classes from "../workloads.module.css";

const ACTIONS: ActionKind[] = ["hold", "release", "priority", "cancel"];

export function BulkBar({ selected, onClear }: { selected: Workload[]; onClear: () => void }) {
  const [asked, setAsked] = useState<ActionKind | null>(null);
  const [priorityClass, setPriorityClass] = useState("");
  const action = useBulkAction(useCluster());
  const close = () => {
    setAsked(null);
    setPriorityClass("");
    action.reset();
  };
  if (selected.length === 0) return null;
  const count = plural(selected.length, { one: "# workload", other: "# workloads" });
  return (
    <Paper className={classes.bulk} role="toolbar" aria-label={t`${count} selected`}>
      <Group gap="xs">
        <Text fz="sm" fw={600} mr="auto" className="kw-number">
          <Trans>{count} selected</Trans>
        </Text>
        {ACTIONS.map((kind) => (
          <Button
            key={kind}
            size="xs"
            variant={kind === "cancel" ? "light" : "default"}
            {...(kind === "cancel" ? { color: "red" } : {})}
            leftSection={<Icon name={actionWords()[kind].icon} size={14} />}
            onClick={() => setAsked(kind)}
          >
            {actionWords()[kind].label}
          </Button>
        ))}
        <Button size="xs" variant="subtle" onClick={onClear}>
          <Trans>Clear</Trans>
        </Button>
      </Group>
      {asked !== null && (
        <ConfirmDialog
          action={actionWords()[asked].label}
          target={asked === "priority" ? t`of ${count}` : count}
          disabled={asked === "priority" && priorityClass === ""}
          destructive={asked === "cancel"}
          pending={action.isPending}
          error={
            action.error === null
              ? null
              : {
                  message: action.error.message,
                  details: faultLines(action.error instanceof ApiError ? action.error.errors : []),
                }
          }
          onConfirm={() =>
            action.mutate(
              {
                action:
                  asked === "priority" ? { kind: asked, priority_class: priorityClass } : { kind: asked },
                workloads: selected,
              },
              {
                onSuccess: ({ changed }) => {
                  notifications.show({
                    color: "teal",
                    title: actionWords()[asked].done,
                    message: t`${formatCount(changed.length)} of ${count}`,
                  });
                  close();
                  onClear();
                },
              },
            )
          }
          onClose={close}
        >
          <Text size="sm">{actionWords()[asked].consequence}</Text>
          {asked === "priority" && <PriorityClassSelect value={priorityClass} onChange={setPriorityClass} />}
          <Text size="sm" c="var(--kw-muted)">
            {asked === "cancel" && (
              <>
                <Trans>The Jobs and other objects that own them are stopped too.</Trans>{" "}
              </>
            )}
            <Trans>Workloads that this action does not apply to are skipped.</Trans>
          </Text>
        </ConfirmDialog>
      )}
    </Paper>
  );
}

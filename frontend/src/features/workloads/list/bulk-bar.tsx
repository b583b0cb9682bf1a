/** The actions on all selected workloads at once. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Paper, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useCluster } from "@/api/cluster";
import type { WorkloadReference } from "@/api/workloads";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { Icon } from "@/components/icon";
import { formatCount } from "@/lib/quantity";
import { formatClock } from "@/lib/time";
import { type ActionKind, actionWords } from "../actions/action-words";
import { Consequences } from "../actions/consequences";
import { PriorityClassSelect } from "../actions/priority-class-select";
import { tellDone, undoOf } from "../actions/undo";
import classes from "../workloads.module.css";
import { BulkResult } from "./bulk-result";
import { type ManyResult, useBulkAction } from "./many-workloads";
import type { Selection } from "./selection";

const ACTIONS: ActionKind[] = ["hold", "release", "requeue", "priority", "cancel"];

export interface BulkBarProps {
  selection: Selection;
  /** How many match the filters; unknown at first. */
  total: number | undefined;
}

export function BulkBar({ selection, total }: BulkBarProps) {
  const [asked, setAsked] = useState<ActionKind | null>(null);
  const undo = useBulkAction(useCluster()).mutation;
  const [done, setDone] = useState<{ kind: ActionKind; result: ManyResult } | null>(null);
  const isShown = useIsShown();
  return (
    <>
      {selection.selected.length > 0 && <Actions selection={selection} total={total} onAsk={setAsked} />}
      {asked !== null && (
        <BulkDialog
          kind={asked}
          selection={selection}
          onClose={() => setAsked(null)}
          onDone={(result, workloads) => {
            setAsked(null);
            selection.clear();
            if (result.changed < result.asked) setDone({ kind: asked, result });
            else
              tellDone(asked, countWords(result.asked), undoOf(asked), async (opposite) => {
                const undone = await undo.mutateAsync({ action: opposite, workloads });
                if (undone.changed === undone.asked) return;
                if (!isShown.current) throw new Error(partWords(undone));
                setDone({ kind: opposite.kind, result: undone });
              });
          }}
        />
      )}
      {done !== null && <BulkResult {...done} onClose={() => setDone(null)} />}
    </>
  );
}

/** False once the reader has left the page: the button of an undo is still there for a while. */
function useIsShown() {
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  return isShown;
}

/** A result in one line, for a reader who has left the page. */
function partWords({ changed, skipped, failed }: ManyResult): string {
  const whys = [...new Set([...failed, ...skipped].map(({ why }) => why))].join(" ");
  return t`${formatCount(changed)} changed. ${whys}`;
}

function countWords(count: number): string {
  return plural(count, { one: "# workload", other: "# workloads" });
}

function Actions({ selection, total, onAsk }: BulkBarProps & { onAsk: (kind: ActionKind) => void }) {
  const count = countWords(selection.selected.length);
  return (
    <Paper className={classes.bulk} role="toolbar" aria-label={t`${count} selected`}>
      <Group gap="xs">
        <Text fz="sm" fw={600} className="kw-number">
          <Trans>{count} selected</Trans>
        </Text>
        <Widen selection={selection} total={total} />
        <Group gap="xs" ml="auto">
          {ACTIONS.map((kind) => (
            <Button
              key={kind}
              size="xs"
              variant={kind === "cancel" ? "light" : "default"}
              {...(kind === "cancel" ? { color: "red" } : {})}
              leftSection={<Icon name={actionWords()[kind].icon} size={14} />}
              disabled={selection.collected !== null}
              onClick={() => onAsk(kind)}
            >
              {actionWords()[kind].label}
            </Button>
          ))}
          <Button size="xs" variant="subtle" onClick={selection.clear}>
            <Trans>Clear</Trans>
          </Button>
        </Group>
      </Group>
    </Paper>
  );
}

/** From the rows that are loaded to all that the filters match. */
function Widen({ selection, total }: BulkBarProps) {
  const { selected, widenedAtMs, collected, error } = selection;
  if (error !== null) {
    return (
      <Text fz="sm" role="alert">
        <Trans>Some workloads could not be selected: {error.message}</Trans>
      </Text>
    );
  }
  if (widenedAtMs !== null) {
    return (
      <Text fz="sm" c="var(--kw-muted)">
        <Trans>matching the filters at {formatClock(widenedAtMs)}</Trans>
      </Text>
    );
  }
  if (total === undefined || total <= selected.length) return null;
  return (
    <Button size="compact-sm" variant="subtle" disabled={collected !== null} onClick={selection.widen}>
      {collected === null
        ? t`Select all ${formatCount(total)} matches`
        : t`Selecting: ${formatCount(collected)} of ${formatCount(total)}`}
    </Button>
  );
}

interface BulkDialogProps {
  kind: ActionKind;
  selection: Selection;
  onClose: () => void;
  onDone: (result: ManyResult, workloads: WorkloadReference[]) => void;
}

function BulkDialog({ kind, selection, onClose, onDone }: BulkDialogProps) {
  const [priorityClass, setPriorityClass] = useState("");
  const { mutation, tried, stop } = useBulkAction(useCluster());
  // Held still while the action runs: the list below goes on.
  const [workloads] = useState(selection.selected);
  const count = countWords(workloads.length);
  return (
    <ConfirmDialog
      action={actionWords()[kind].label}
      target={kind === "priority" ? t`of ${count}` : count}
      disabled={kind === "priority" && priorityClass === ""}
      destructive={kind === "cancel"}
      pending={mutation.isPending}
      error={mutation.error === null ? null : { message: mutation.error.message }}
      onConfirm={() =>
        mutation.mutate(
          { action: kind === "priority" ? { kind, priority_class: priorityClass } : { kind }, workloads },
          { onSuccess: (result) => onDone(result, workloads) },
        )
      }
      onClose={mutation.isPending ? stop : onClose}
    >
      <Text size="sm">{actionWords()[kind].consequence}</Text>
      {kind === "priority" && <PriorityClassSelect value={priorityClass} onChange={setPriorityClass} />}
      <Consequences kind={kind} workloads={workloads} priorityClass={priorityClass} />
      {selection.widenedAtMs !== null && (
        <Text size="sm" fw={600}>
          <Trans>
            The selection contains all workloads that matched the filters at{" "}
            {formatClock(selection.widenedAtMs)}, including workloads that are off screen or have changed
            since.
          </Trans>
        </Text>
      )}
      <Text size="sm" c="var(--kw-muted)">
        {kind === "cancel" && (
          <>
            <Trans>The Jobs and other objects that own them are stopped, too.</Trans>{" "}
          </>
        )}
        <Trans>Workloads that this action does not apply to are skipped.</Trans>
      </Text>
      {mutation.isPending && (
        <Text size="sm" role="status" className="kw-number">
          <Trans>
            {formatCount(tried)} of {count}. Press Back to stop before the next batch.
          </Trans>
        </Text>
      )}
    </ConfirmDialog>
  );
}

/** The actions of a workload's owner; each asks first, and reports its errors. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Text } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { isMirrored, maySubmit, sessionQuery } from "@/api/session";
import type { Workload } from "@/api/types";
import { useWorkloadAction } from "@/api/workloads";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { Icon } from "@/components/icon";
import { SubmitAgain } from "../submit/submit-again";
import { type ActionKind, actionWords } from "./action-words";
import { Consequences } from "./consequences";
import { PriorityClassSelect } from "./priority-class-select";
import { tellDone, undoOf } from "./undo";

/** The possible actions now, in the order of the buttons. */
export function possibleActions(workload: Pick<Workload, "status" | "active" | "variant_of">): ActionKind[] {
  // A variant is changed by the workload that it is of, and by no one else.
  if (workload.status === "Finished" || workload.variant_of !== "") return [];
  const holdsQuota = workload.status === "Admitted" || workload.status === "QuotaReserved";
  return [
    workload.active ? "hold" : "release",
    ...(workload.active && holdsQuota ? (["requeue"] as const) : []),
    "priority",
    "cancel",
  ];
}

export function WorkloadActions({ workload }: { workload: Workload }) {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const cluster = useCluster();
  const [asked, setAsked] = useState<ActionKind | null>(null);
  if (isMirrored(session, cluster) || !maySubmit(session, workload.namespace)) return null;
  return (
    <>
      {possibleActions(workload).map((kind) => (
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
      {workload.variant_of === "" && <SubmitAgain workload={workload} />}
      {asked !== null && <ActionQuestion kind={asked} workload={workload} onClose={() => setAsked(null)} />}
    </>
  );
}

interface ActionQuestionProps {
  kind: ActionKind;
  workload: Workload;
  onClose: () => void;
}

function ActionQuestion({ kind, workload, onClose }: ActionQuestionProps) {
  const cluster = useCluster();
  const action = useWorkloadAction(cluster, workload);
  const [priorityClass, setPriorityClass] = useState(workload.priority_class);
  const name = `${workload.namespace}/${workload.name}`;
  return (
    <ConfirmDialog
      action={actionWords()[kind].label}
      target={kind === "priority" ? t`of ${name}` : name}
      destructive={kind === "cancel"}
      disabled={kind === "priority" && priorityClass === workload.priority_class}
      pending={action.isPending}
      error={action.error}
      onConfirm={() =>
        action.mutate(kind === "priority" ? { kind, priority_class: priorityClass } : { kind }, {
          onSuccess: () => {
            tellDone(kind, name, undoOf(kind), (opposite) => action.mutateAsync(opposite));
            onClose();
          },
        })
      }
      onClose={onClose}
    >
      <Text size="sm">{actionWords()[kind].consequence}</Text>
      {kind === "cancel" && workload.owner !== null && (
        <Text size="sm">
          <Trans>
            It belongs to {workload.owner.kind} <b>{workload.owner.name}</b>, which is stopped with all its
            pods.
          </Trans>
        </Text>
      )}
      {kind === "priority" && <PriorityClassSelect value={priorityClass} onChange={setPriorityClass} />}
      <Consequences
        kind={kind}
        workloads={[workload]}
        {...(priorityClass === workload.priority_class ? {} : { priorityClass })}
      />
    </ConfirmDialog>
  );
}

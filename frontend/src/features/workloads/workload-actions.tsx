/** What its owner may do to a workload; each asks first, and says what went wrong. */
import { Button, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { namesQuery } from "@/api/queues";
import { maySubmit, sessionQuery } from "@/api/session";
import type { Workload } from "@/api/types";
import { useWorkloadAction } from "@/api/workloads";
import { ErrorState } from "@/components/error-state";
import { Icon } from "@/components/icon";
import { ACTION_WORDS, type ActionKind } from "./action-words";

/** What can be done to it now, in the order of the buttons. */
export function possibleActions(workload: Pick<Workload, "status" | "active">): ActionKind[] {
  if (workload.status === "Finished") return [];
  return [workload.active ? "hold" : "release", "priority", "cancel"];
}

export function WorkloadActions({ workload }: { workload: Workload }) {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const [asked, setAsked] = useState<ActionKind | null>(null);
  if (!maySubmit(session, workload.namespace)) return null;
  return (
    <>
      {possibleActions(workload).map((kind) => (
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
      <Modal
        opened={asked !== null}
        onClose={() => setAsked(null)}
        title={asked === null ? "" : `${ACTION_WORDS[asked].label}: ${workload.namespace}/${workload.name}`}
      >
        {asked !== null && <ActionForm kind={asked} workload={workload} onDone={() => setAsked(null)} />}
      </Modal>
    </>
  );
}

function ActionForm({
  kind,
  workload,
  onDone,
}: {
  kind: ActionKind;
  workload: Workload;
  onDone: () => void;
}) {
  const cluster = useCluster();
  const action = useWorkloadAction(cluster, workload);
  const classes = useQuery({
    ...namesQuery(cluster, "workload-priority-classes"),
    enabled: kind === "priority",
  });
  const [priorityClass, setPriorityClass] = useState(workload.priority_class);
  const send = () =>
    action.mutate(kind === "priority" ? { kind, priority_class: priorityClass } : { kind }, {
      onSuccess: () => {
        notifications.show({
          color: "teal",
          title: ACTION_WORDS[kind].done,
          message: `${workload.namespace}/${workload.name}`,
        });
        onDone();
      },
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Stack>
        <Text size="sm">{ACTION_WORDS[kind].consequence}</Text>
        {kind === "priority" && (
          <Select
            label="WorkloadPriorityClass"
            data={classes.data ?? []}
            value={priorityClass === "" ? null : priorityClass}
            onChange={(name) => setPriorityClass(name ?? "")}
            searchable
            data-autofocus
          />
        )}
        {action.error !== null && <ErrorState title="It was not done" message={action.error.message} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            Back
          </Button>
          <Button
            type="submit"
            loading={action.isPending}
            disabled={kind === "priority" && priorityClass === workload.priority_class}
            {...(kind === "cancel" ? { color: "red", "data-autofocus": true } : {})}
          >
            {ACTION_WORDS[kind].label}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

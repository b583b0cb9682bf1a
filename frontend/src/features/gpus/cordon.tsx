/** The buttons by which a cluster admin cordons, drains and uncordons a node or a card; each asks first. */
import { ActionIcon, Button, Group, Menu, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { type CordonChange, type CordonTarget, useCordon } from "@/api/cordon";
import { isClusterAdmin, sessionQuery } from "@/api/session";
import { ErrorState } from "@/components/error-state";
import { Icon, type IconName } from "@/components/icon";

type Step = "cordon" | "drain" | "uncordon";

const STEPS: Record<Step, { label: string; icon: IconName; consequence: string; change: CordonChange }> = {
  cordon: {
    label: "Cordon",
    icon: "pause",
    consequence: "It takes nothing new. What runs there goes on.",
    change: { cordoned: true },
  },
  drain: {
    label: "Drain",
    icon: "stop",
    consequence:
      "It takes nothing new, and the workloads that we placed there are evicted: their pods stop, and they wait for another place.",
    change: { draining: true },
  },
  uncordon: {
    label: "Uncordon",
    icon: "play",
    consequence: "It takes pods again.",
    change: { cordoned: false },
  },
};

/** What may be done next; `state` is undefined where that is not known. */
export function nextSteps(state: "cordoned" | "draining" | undefined): Step[] {
  if (state === "draining") return ["uncordon"];
  return state === "cordoned" ? ["drain", "uncordon"] : ["cordon", "drain"];
}

export interface CordonProps {
  target: CordonTarget;
  /** What the questions call it. */
  name: string;
  state: "cordoned" | "draining" | undefined;
}

/** In a row, for a place that has room. */
export function CordonButtons({ target, name, state }: CordonProps) {
  const { allowed, ask, question } = useQuestion(target, name);
  if (!allowed) return null;
  return (
    <Group gap="xs">
      {nextSteps(state).map((step) => (
        <Button
          key={step}
          size="xs"
          variant={step === "drain" ? "light" : "default"}
          {...(step === "drain" ? { color: "red" } : {})}
          leftSection={<Icon name={STEPS[step].icon} size={14} />}
          onClick={() => ask(step)}
        >
          {STEPS[step].label}
        </Button>
      ))}
      {question}
    </Group>
  );
}

/** Behind one small button, for a place that has none. */
export function CordonMenu({ target, name, state }: CordonProps) {
  const { allowed, ask, question } = useQuestion(target, name);
  if (!allowed) return null;
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Cordon or drain ${name}`}>
            <Icon name="more" size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {nextSteps(state).map((step) => (
            <Menu.Item
              key={step}
              leftSection={<Icon name={STEPS[step].icon} size={14} />}
              {...(step === "drain" ? { color: "red" } : {})}
              onClick={() => ask(step)}
            >
              {STEPS[step].label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {question}
    </>
  );
}

function useQuestion(target: CordonTarget, name: string) {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const [asked, ask] = useState<Step | null>(null);
  const question = (
    <Modal
      opened={asked !== null}
      onClose={() => ask(null)}
      title={asked === null ? "" : `${STEPS[asked].label}: ${name}`}
    >
      {asked !== null && <Question target={target} name={name} step={asked} onDone={() => ask(null)} />}
    </Modal>
  );
  return { allowed: isClusterAdmin(session), ask, question };
}

function Question({
  target,
  name,
  step,
  onDone,
}: {
  target: CordonTarget;
  name: string;
  step: Step;
  onDone: () => void;
}) {
  const cordon = useCordon(useCluster(), target);
  const { label, consequence, change } = STEPS[step];
  const send = () =>
    cordon.mutate(change, {
      onSuccess: () => {
        notifications.show({ color: "teal", title: label, message: name });
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
        <Text size="sm">{consequence}</Text>
        {cordon.error !== null && <ErrorState title="It was not done" message={cordon.error.message} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            Back
          </Button>
          <Button
            type="submit"
            loading={cordon.isPending}
            data-autofocus
            {...(step === "drain" ? { color: "red" } : {})}
          >
            {label}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

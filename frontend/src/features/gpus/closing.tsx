/** The buttons by which a cluster admin closes a node or a card, empties it, and opens it again; each asks first. */
import { ActionIcon, Button, Group, Menu, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Closing, type ClosingTarget, useClosing } from "@/api/closing";
import { useCluster } from "@/api/cluster";
import { isClusterAdmin, sessionQuery } from "@/api/session";
import { ErrorState } from "@/components/error-state";
import { Icon, type IconName } from "@/components/icon";

type Step = "cordon" | "drain" | "open";

const STEPS: Record<Step, { label: string; icon: IconName; consequence: string; change: Closing }> = {
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
  open: {
    label: "Uncordon",
    icon: "play",
    consequence: "It takes pods again.",
    change: { cordoned: false },
  },
};

/** What may be done next; `closed` is undefined where that is not known. */
export function nextSteps(closed: "cordoned" | "draining" | undefined): Step[] {
  if (closed === "draining") return ["open"];
  return closed === "cordoned" ? ["drain", "open"] : ["cordon", "drain"];
}

export interface ClosingProps {
  target: ClosingTarget;
  /** What the questions call it. */
  name: string;
  closed: "cordoned" | "draining" | undefined;
}

/** In a row, for a place that has room. */
export function ClosingButtons({ target, name, closed }: ClosingProps) {
  const { allowed, ask, question } = useQuestion(target, name);
  if (!allowed) return null;
  return (
    <Group gap="xs">
      {nextSteps(closed).map((step) => (
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
export function ClosingMenu({ target, name, closed }: ClosingProps) {
  const { allowed, ask, question } = useQuestion(target, name);
  if (!allowed) return null;
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Close or open ${name}`}>
            <Icon name="more" size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {nextSteps(closed).map((step) => (
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

function useQuestion(target: ClosingTarget, name: string) {
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
  target: ClosingTarget;
  name: string;
  step: Step;
  onDone: () => void;
}) {
  const closing = useClosing(useCluster(), target);
  const { label, consequence, change } = STEPS[step];
  const send = () =>
    closing.mutate(change, {
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
        {closing.error !== null && <ErrorState title="It was not done" message={closing.error.message} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            Back
          </Button>
          <Button
            type="submit"
            loading={closing.isPending}
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

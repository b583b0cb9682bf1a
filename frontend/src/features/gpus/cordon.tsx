/** The buttons by which a cluster admin cordons, drains and uncordons a node or a device; each asks first. */
import { t } from "@lingui/core/macro";
import { ActionIcon, Button, Group, Menu, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { type CordonChange, type CordonTarget, useCordon } from "@/api/cordon";
import { isClusterAdmin, isMirrored, sessionQuery } from "@/api/session";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { Icon, type IconName } from "@/components/icon";

type Step = "cordon" | "drain" | "uncordon";

const steps = (): Record<
  Step,
  { label: string; done: string; icon: IconName; consequence: string; change: CordonChange }
> => ({
  cordon: {
    label: t`Cordon`,
    done: t`Cordoned`,
    icon: "pause",
    consequence: t`No new pods are placed here. Running pods continue.`,
    change: { cordoned: true },
  },
  drain: {
    label: t`Drain`,
    done: t`Draining`,
    icon: "stop",
    consequence: t`No new pods are placed here. Workloads that kueueweb placed here are evicted: their pods stop, and they go back to their queues.`,
    change: { draining: true },
  },
  uncordon: {
    label: t`Uncordon`,
    done: t`Uncordoned`,
    icon: "play",
    consequence: t`New pods can be placed here again.`,
    change: { cordoned: false },
  },
});

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
          leftSection={<Icon name={steps()[step].icon} size={14} />}
          onClick={() => ask(step)}
        >
          {steps()[step].label}
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
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t`Cordon or drain ${name}`}>
            <Icon name="more" size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {nextSteps(state).map((step) => (
            <Menu.Item
              key={step}
              leftSection={<Icon name={steps()[step].icon} size={14} />}
              {...(step === "drain" ? { color: "red" } : {})}
              onClick={() => ask(step)}
            >
              {steps()[step].label}
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
  const cluster = useCluster();
  const [asked, ask] = useState<Step | null>(null);
  const question = asked !== null && (
    <Question target={target} name={name} step={asked} onClose={() => ask(null)} />
  );
  return { allowed: isClusterAdmin(session) && !isMirrored(session, cluster), ask, question };
}

interface QuestionProps {
  target: CordonTarget;
  name: string;
  step: Step;
  onClose: () => void;
}

function Question({ target, name, step, onClose }: QuestionProps) {
  const cordon = useCordon(useCluster(), target);
  const { label, consequence, change } = steps()[step];
  return (
    <ConfirmDialog
      action={label}
      target={name}
      destructive={step === "drain"}
      pending={cordon.isPending}
      error={cordon.error}
      onConfirm={() =>
        cordon.mutate(change, {
          onSuccess: () => {
            notifications.show({ color: "teal", title: steps()[step].done, message: name });
            onClose();
          },
        })
      }
      onClose={onClose}
    >
      <Text size="sm">{consequence}</Text>
    </ConfirmDialog>
  );
}

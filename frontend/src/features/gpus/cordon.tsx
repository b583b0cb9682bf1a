/** The buttons by which a cluster admin cordons, drains and uncordons a node or a device; each asks first. */
import { plural, t } from "@lingui/core/macro";
import { ActionIcon, Alert, Button, Group, Menu, Text } from "@mantine/core";
import { useInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { type CordonChange, type CordonTarget, useCordon } from "@/api/hardware/cordon";
import { nodePodsQuery } from "@/api/nodes";
import { isClusterAdmin, isMirrored, sessionQuery } from "@/api/session";
import { useTrial } from "@/api/studio/questions";
import type { LiveDevice, NodePod } from "@/api/types";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { tellWithUndo } from "@/components/dialog/undo-notification";
import { Icon, type IconName } from "@/components/icon";
import { TriedEffects } from "@/components/manifest/tried-effects";
import { WorkloadNames } from "@/components/object-links";
import type { CordonState } from "@/lib/words/node-state";

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
    consequence: t`No new pods are placed here. Workloads that kueueweb placed here are evicted: their pods stop, and they return to their queues.`,
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

/** The step that restores the state before this one; a drain of a cordoned node leaves it cordoned. */
export function undoOf(step: Step, state: CordonState): CordonChange {
  if (step === "uncordon") return state === "draining" ? { draining: true } : { cordoned: true };
  return state === "cordoned" ? { draining: false } : { cordoned: false };
}

/** The possible next steps; `state` is undefined while it is not known. */
export function nextSteps(state: CordonState): Step[] {
  if (state === "draining") return ["uncordon"];
  return state === "cordoned" ? ["drain", "uncordon"] : ["cordon", "drain"];
}

export interface CordonProps {
  target: CordonTarget;
  /** Its name in the questions. */
  name: string;
  state: CordonState;
}

/** In a row, for a place that has room. */
export function CordonButtons({ target, name, state }: CordonProps) {
  const { allowed, ask, question } = useQuestion({ target, name, state });
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
  const { allowed, ask, question } = useQuestion({ target, name, state });
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

function useQuestion(place: CordonProps) {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const cluster = useCluster();
  const [asked, ask] = useState<Step | null>(null);
  const question = asked !== null && <Question {...place} step={asked} onClose={() => ask(null)} />;
  return { allowed: isClusterAdmin(session) && !isMirrored(session, cluster), ask, question };
}

/** Lists the workloads that a drain of the node stops, and the workloads on the node that continue. */
function Holders({ target, drains }: { target: CordonTarget; drains: boolean }) {
  const cluster = useCluster();
  const devices = useLive((live) => live.data?.devices);
  const node = "node" in target ? target.node : "";
  const pods = useInfiniteQuery({ ...nodePodsQuery(cluster, node), enabled: node !== "" });
  const holders = holdersOf(target, devices ?? {}, pods.data?.pages.flatMap(({ results }) => results) ?? []);
  const partly = pods.hasNextPage;
  const place = drainedPlace(target, devices ?? {});
  const plan = drains && holders.length > 0 && place !== undefined ? { nodes: [place] } : null;
  const trial = useTrial(cluster, plan);
  return (
    <Alert
      variant="light"
      color={drains && holders.length > 0 ? "yellow" : "teal"}
      title={t`Effects now`}
      role="status"
    >
      <Text size="sm">
        {holders.length === 0 ? (
          t`No workload runs here.`
        ) : (
          <WorkloadNames
            text={
              drains
                ? plural(holders.length, {
                    one: "# workload stops, with all its pods",
                    other: "# workloads stop, with all their pods",
                  })
                : plural(holders.length, { one: "# workload continues", other: "# workloads continue" })
            }
            count={holders.length}
            workloads={holders}
          />
        )}
        {partly && ` ${t`This list of pods is incomplete.`}`}
      </Text>
      {plan !== null && <TriedEffects {...trial} drains />}
    </Alert>
  );
}

/** The name in a plan of the studio; undefined for a device that the live numbers do not have. */
function drainedPlace(target: CordonTarget, devices: Readonly<Record<string, LiveDevice>>) {
  if ("node" in target) return { drain: target.node };
  const node = devices[target.device]?.node;
  return node === undefined ? undefined : { drain: node, device: target.device };
}

/** The workloads as namespace/name, each once. */
export function holdersOf(
  target: CordonTarget,
  devices: Readonly<Record<string, LiveDevice>>,
  pods: readonly Pick<NodePod, "namespace" | "workload">[],
): string[] {
  const there = Object.entries(devices).filter(([uuid, { node }]) =>
    "node" in target ? node === target.node : uuid === target.device,
  );
  const holding = there.flatMap(([, { slices }]) => slices.flatMap(({ workload }) => workload ?? []));
  const running = pods
    .filter(({ workload }) => workload !== "")
    .map((pod) => `${pod.namespace}/${pod.workload}`);
  return [...new Set([...holding, ...running])].sort();
}

interface QuestionProps extends CordonProps {
  step: Step;
  onClose: () => void;
}

function Question({ target, name, state, step, onClose }: QuestionProps) {
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
            tellWithUndo(
              steps()[step].done,
              name,
              () => cordon.mutateAsync(undoOf(step, state)),
              step === "drain"
                ? t`${name}. Undo ends the drain; evicted workloads stay in their queues.`
                : name,
            );
            onClose();
          },
        })
      }
      onClose={onClose}
    >
      <Text size="sm">{consequence}</Text>
      {step !== "uncordon" && <Holders target={target} drains={step === "drain"} />}
    </ConfirmDialog>
  );
}

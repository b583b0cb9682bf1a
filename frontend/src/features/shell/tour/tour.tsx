/** A tour of eight pages: a small card in a corner says what each page answers. The pages stay usable, and it can be left at any time. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, CloseButton, Group, Paper, Text } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { Page } from "../pages";
import classes from "./tour.module.css";

interface Step {
  to: Page["to"];
  title: string;
  text: string;
}

export const steps = (): Step[] => [
  {
    to: "/",
    title: t`The cluster in one sentence`,
    text: t`The first line says what waits, what is free and what is broken; each part is a link. Drag in the chart to zoom; click in it to list the decisions of that minute.`,
  },
  {
    to: "/workloads",
    title: t`Every workload, with its reason`,
    text: t`The column Why says why a workload waits. Click a row to open it beside the list: it shows what would start the workload now. Select several to hold, release or cancel them.`,
  },
  {
    to: "/queues",
    title: t`Queues and their quota`,
    text: t`Cohorts share quota: the hatched part may be borrowed. A queue's page lists its pending workloads in order; the pencil edits a quota and shows the effects before you save.`,
  },
  {
    to: "/gpus",
    title: t`Every GPU, slice by slice`,
    text: t`Each tenant has a color. Click a device for its holders and its use. An administrator cordons or drains it there, and sees first which workloads stop and start.`,
  },
  {
    to: "/nodes",
    title: t`Nodes`,
    text: t`Sort by a column to find the emptiest node. Below the list are charts of all GPUs.`,
  },
  {
    to: "/decisions",
    title: t`What happened at 14:05?`,
    text: t`Every admission, preemption and eviction with its reason. Choose a time range, or filter by workload and queue.`,
  },
  {
    to: "/reports",
    title: t`Who used how much?`,
    text: t`GPU-hours and cost by user, queue or namespace, waiting times, idle GPUs and preemptions, also as CSV.`,
  },
  {
    to: "/what-if",
    title: t`Try it before you do it`,
    text: t`A failing node, another quota, a new job: the plan is tried on a copy of the cluster, and nothing is changed.`,
  },
];

export interface TourProps {
  /** The cluster that the tour shows, if the page is of several. */
  cluster?: string | undefined;
  onLeave: () => void;
}

export function Tour({ cluster, onLeave }: TourProps) {
  const [place, setPlace] = useState(0);
  const navigate = useNavigate();
  const next = useRef<HTMLButtonElement>(null);
  const step = steps()[place];
  const count = steps().length;
  const isLast = place === count - 1;
  const to = step?.to;
  useEffect(() => {
    if (to !== undefined) void navigate(cluster === undefined ? { to } : { to, search: { cluster } });
    next.current?.focus();
  }, [to, cluster, navigate]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      // A dialog that is open takes the key.
      if (event.key === "Escape" && document.querySelector("[aria-modal=true]") === null) onLeave();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [onLeave]);
  if (step === undefined) return null;
  return (
    <Paper component="section" aria-label={t`Tour`} className={classes.tour} shadow="lg">
      <Group justify="space-between" wrap="nowrap" mb={4}>
        <Text size="xs" c="var(--kw-muted)" className="kw-number">
          <Trans>
            Step {place + 1} of {count}
          </Trans>
        </Text>
        <CloseButton size="sm" aria-label={t`Leave the tour`} onClick={onLeave} />
      </Group>
      <div role="status">
        <Text fw={600}>{step.title}</Text>
        <Text size="sm" mt={4}>
          {step.text}
        </Text>
      </div>
      <Group justify="flex-end" gap="xs" mt="sm">
        {place > 0 && (
          <Button size="xs" variant="default" onClick={() => setPlace(place - 1)}>
            <Trans>Back</Trans>
          </Button>
        )}
        <Button ref={next} size="xs" onClick={() => (isLast ? onLeave() : setPlace(place + 1))}>
          {isLast ? t`Done` : t`Next`}
        </Button>
      </Group>
    </Paper>
  );
}

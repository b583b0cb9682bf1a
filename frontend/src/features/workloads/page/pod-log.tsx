/** The log of a container, as it is written. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Modal, Select, Switch, Text } from "@mantine/core";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { send } from "@/api/client";
import { useCluster } from "@/api/cluster";
import type { Pod } from "@/api/types";
import { podLogUrl, type WorkloadReference } from "@/api/workloads";
import classes from "../workloads.module.css";
import { EMPTY_LOG, type LogText, withPiece } from "./pod-log-lines";

export function PodLog({
  workload,
  pod,
  onClose,
}: {
  workload: WorkloadReference;
  pod: Pod;
  onClose: () => void;
}) {
  const [container, setContainer] = useState(pod.containers.at(-1) ?? "");
  const [previous, setPrevious] = useState(false);
  const [attempt, setAttempt] = useState(0);
  return (
    <Modal opened onClose={onClose} size="xl" title={t`Log of ${pod.name}`}>
      {pod.containers.length > 1 && (
        <Select
          label={t`Container`}
          data={pod.containers}
          value={container}
          onChange={(value) => setContainer(value ?? container)}
          allowDeselect={false}
          mb="sm"
        />
      )}
      {pod.restarts > 0 && (
        <Switch
          label={t`Before the last restart`}
          checked={previous}
          onChange={(event) => setPrevious(event.currentTarget.checked)}
          mb="sm"
        />
      )}
      <Lines
        key={`${container} ${previous} ${attempt}`}
        workload={workload}
        pod={pod.name}
        container={container}
        previous={previous}
        onAgain={() => setAttempt(attempt + 1)}
      />
    </Modal>
  );
}

interface LinesProps {
  workload: WorkloadReference;
  pod: string;
  container: string;
  previous: boolean;
  onAgain: () => void;
}

/** One reading of a log, from its last lines to its end. */
function Lines({ workload, pod, container, previous, onAgain }: LinesProps) {
  const cluster = useCluster();
  const { namespace, name } = workload;
  const [log, setLog] = useState<LogText>(EMPTY_LOG);
  const [state, setState] = useState<"open" | "ended" | Error>("open");
  const end = useStickToEnd();

  useEffect(() => {
    const stop = new AbortController();
    const url = podLogUrl(cluster, { namespace, name }, pod, container, previous);
    follow(url, stop.signal, (piece) => setLog((before) => withPiece(before, piece))).then(
      () => setState("ended"),
      (error: unknown) => {
        if (!stop.signal.aborted) setState(error instanceof Error ? error : new Error(String(error)));
      },
    );
    return () => stop.abort();
  }, [cluster, namespace, name, pod, container, previous]);

  return (
    <>
      <div {...end} className={classes.log} role="log" aria-label={t`Log of ${pod}`}>
        {log.dropped > 0 && (
          <Text fz="xs">
            <Trans>{log.dropped} earlier lines are omitted.</Trans>
          </Text>
        )}
        <pre>{[...log.lines, ...(log.rest === "" ? [] : [log.rest])].join("\n")}</pre>
      </div>
      <Group justify="space-between" mt="xs">
        <Text fz="sm" c="var(--kw-muted)" role="status">
          {state instanceof Error
            ? state.message
            : state === "open"
              ? t`Following until the log ends.`
              : t`No more lines.`}
        </Text>
        {state !== "open" && (
          <Button variant="default" size="xs" onClick={onAgain}>
            <Trans>Reload</Trans>
          </Button>
        )}
      </Group>
    </>
  );
}

const NEAR_END = 24;

/** Keeps a scrolling box at its end as it grows, unless the reader has scrolled up. */
function useStickToEnd() {
  const ref = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  // After each render: whatever was drawn may have made it longer.
  useLayoutEffect(() => {
    if (ref.current !== null && sticks.current) ref.current.scrollTop = ref.current.scrollHeight;
  });
  const onScroll = () => {
    const box = ref.current;
    if (box !== null) sticks.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
  };
  return { ref, onScroll };
}

/** Hands over each piece of the log as it comes, until its end. */
async function follow(url: string, signal: AbortSignal, hear: (piece: string) => void): Promise<void> {
  const response = await send(new Request(url, { signal, credentials: "same-origin" }));
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  for (let read = await reader.read(); !read.done; read = await reader.read()) hear(read.value);
}

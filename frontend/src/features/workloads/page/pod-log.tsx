/** What a container prints, as it prints it. */
import { Button, Group, Modal, Select, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { ApiError, send } from "@/api/client";
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
  return (
    <Modal opened onClose={onClose} size="xl" title={`Log of ${pod.name}`}>
      {pod.containers.length > 1 && (
        <Select
          label="Container"
          data={pod.containers}
          value={container}
          onChange={(value) => setContainer(value ?? container)}
          allowDeselect={false}
          mb="sm"
        />
      )}
      <Lines key={container} workload={workload} pod={pod.name} container={container} />
    </Modal>
  );
}

function Lines({
  workload,
  pod,
  container,
}: {
  workload: WorkloadReference;
  pod: string;
  container: string;
}) {
  const cluster = useCluster();
  const { namespace, name } = workload;
  const [log, setLog] = useState<LogText>(EMPTY_LOG);
  const [state, setState] = useState<"open" | "ended" | Error>("open");
  const [attempt, setAttempt] = useState(0);
  const box = useRef<HTMLDivElement>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt reads anew
  useEffect(() => {
    const stop = new AbortController();
    setLog(EMPTY_LOG);
    setState("open");
    follow(podLogUrl(cluster, { namespace, name }, pod, container), stop.signal, (piece) =>
      setLog((before) => withPiece(before, piece)),
    ).then(
      () => setState("ended"),
      (error: unknown) => {
        if (!stop.signal.aborted) setState(error instanceof Error ? error : new Error(String(error)));
      },
    );
    return () => stop.abort();
  }, [cluster, namespace, name, pod, container, attempt]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: with each new line
  useEffect(() => {
    if (box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [log]);

  return (
    <>
      <div ref={box} className={classes.log} role="log" aria-label={`Log of ${pod}`}>
        {log.dropped > 0 && <Text fz="xs">{log.dropped} earlier lines are left out.</Text>}
        <pre>{[...log.lines, ...(log.rest === "" ? [] : [log.rest])].join("\n")}</pre>
      </div>
      <Group justify="space-between" mt="xs">
        <Text fz="sm" c="var(--kw-muted)" role="status">
          {state instanceof ApiError || state instanceof Error
            ? state.message
            : state === "open"
              ? "Followed until it ends."
              : "No more lines."}
        </Text>
        {state !== "open" && (
          <Button variant="default" size="xs" onClick={() => setAttempt(attempt + 1)}>
            Read again
          </Button>
        )}
      </Group>
    </>
  );
}

/** Hands over each piece of the log as it comes, until its end. */
async function follow(url: string, signal: AbortSignal, hear: (piece: string) => void): Promise<void> {
  const response = await send(new Request(url, { signal, credentials: "same-origin" }));
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  for (let read = await reader.read(); !read.done; read = await reader.read()) hear(read.value);
}

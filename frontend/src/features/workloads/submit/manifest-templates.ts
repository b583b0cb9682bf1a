/** Manifests to start from; NAMESPACE and QUEUE stand for a LocalQueue of the reader's. */

import { t } from "@lingui/core/macro";

const SHARED = `apiVersion: batch/v1
kind: Job
metadata:
  generateName: train-on-a-slice-
  namespace: NAMESPACE
  labels:
    kueue.x-k8s.io/queue-name: QUEUE
spec:
  suspend: true
  parallelism: 1
  completions: 1
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: registry.k8s.io/pause:3.10
          resources:
            requests:
              cpu: "2"
              memory: 8Gi
            limits:
              nvidia.com/gpu: "1"
              nvidia.com/gpumem: "8192"
              nvidia.com/gpucores: "30"
`;

const EXCLUSIVE = `apiVersion: batch/v1
kind: Job
metadata:
  generateName: train-on-whole-devices-
  namespace: NAMESPACE
  labels:
    kueue.x-k8s.io/queue-name: QUEUE
spec:
  suspend: true
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: registry.k8s.io/pause:3.10
          resources:
            requests:
              cpu: "8"
              memory: 64Gi
            limits:
              nvidia.com/gpu: "4"
`;

const CPU = `apiVersion: batch/v1
kind: Job
metadata:
  generateName: preprocess-
  namespace: NAMESPACE
  labels:
    kueue.x-k8s.io/queue-name: QUEUE
spec:
  suspend: true
  parallelism: 4
  completions: 4
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: work
          image: registry.k8s.io/pause:3.10
          resources:
            requests:
              cpu: 500m
              memory: 1Gi
`;

/** The examples of the documentation, one of each kind of job. */
const EXAMPLES = import.meta.glob<string>("../../../../../docs/examples/*.yaml", {
  eager: true,
  import: "default",
  query: "?raw",
});

function ofKind([path, text]: [string, string]): { name: string; text: string } {
  const kind = /^kind: (\w+)$/m.exec(text)?.[1] ?? path;
  return {
    name: path.endsWith("-group.yaml") ? `${kind} group` : kind,
    text: text
      .replaceAll("namespace: demo", "namespace: NAMESPACE")
      .replaceAll("queue-name: main", "queue-name: QUEUE")
      .replace(/^ {2}name: (.+)$/gm, "  generateName: $1-"),
  };
}

export const TEMPLATES = [
  { name: "slice", text: SHARED },
  { name: "whole", text: EXCLUSIVE },
  { name: "cpu", text: CPU },
  ...Object.entries(EXAMPLES).map(ofKind),
] as const;

/** The reader's choice: a kind of job, or the requests of our own templates. */
export function templateLabel(name: string): string {
  const own: Record<string, string> = {
    slice: t`A slice of one GPU`,
    whole: t`Whole GPUs, two pods`,
    cpu: t`CPU only`,
  };
  return own[name] ?? name;
}

/** The template's text for a LocalQueue. */
export function templateText(name: string, queue: { namespace: string; name: string }): string {
  const text = TEMPLATES.find((template) => template.name === name)?.text ?? "";
  return text.replaceAll("NAMESPACE", queue.namespace).replaceAll("QUEUE", queue.name);
}

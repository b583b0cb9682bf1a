import { expect, test } from "vitest";
import type { Manifest } from "@/lib/manifest/object";
import { againText, beginningOf } from "./job-again";

test.each([
  ["train-on-a-slice-x7f2k", "train-on-a-slice-"],
  ["nightly", "nightly-"],
  ["nightly-train", "nightly-train-"],
  ["a".repeat(63), `${"a".repeat(57)}-`],
])("the name of %s's next job begins with %s", (name, beginning) => {
  expect(beginningOf(name)).toBe(beginning);
});

const JOB: Manifest = {
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: {
    name: "train-x7f2k",
    namespace: "team",
    uid: "6a1f",
    resourceVersion: "7",
    labels: { "kueue.x-k8s.io/queue-name": "main" },
    annotations: {},
  },
  spec: {
    suspend: false,
    selector: { matchLabels: { "batch.kubernetes.io/controller-uid": "6a1f" } },
    template: {
      metadata: { labels: { "job-name": "train-x7f2k", "controller-uid": "6a1f" } },
      spec: { containers: [{ name: "main", image: "app" }] },
    },
  },
  status: { active: 1 },
};

test("the next job has no name, selector, label or status of the one before", () => {
  expect(againText(JOB)).toBe(
    `apiVersion: batch/v1
kind: Job
metadata:
  generateName: train-
  namespace: team
  labels:
    kueue.x-k8s.io/queue-name: main
spec:
  suspend: true
  template:
    spec:
      containers:
        - name: main
          image: app
`,
  );
});

test("a selector that the author asked for stays", () => {
  const chosen = { ...JOB, spec: { selector: { matchLabels: { app: "x" } }, manualSelector: true } };
  expect(againText(chosen)).toContain("app: x");
  expect(
    againText({ ...chosen, kind: "StatefulSet", spec: { selector: { matchLabels: { app: "x" } } } }),
  ).toContain("app: x");
});

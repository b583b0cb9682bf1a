import { expect, test } from "vitest";
import {
  canWrite,
  FIELDS,
  readFields,
  readName,
  wordsOf,
  writeField,
  writeName,
  writeQueue,
} from "./manifest-fields";
import { TEMPLATES, templateText } from "./manifest-templates";

const QUEUE = { namespace: "team", name: "fast" };
const SLICE = templateText(TEMPLATES[0].name, QUEUE);

test("the form shows what the manifest says", () => {
  expect(readFields(SLICE)).toEqual({
    image: "registry.k8s.io/pause:3.10",
    replicas: "1",
    cpu: "2",
    memory: "8Gi",
    gpus: "1",
    gpuMemory: "8192",
    gpuCores: "30",
  });
});

const VALUES = {
  image: "ghcr.io/team/train:2",
  command: 'python train.py --name "a b"',
  replicas: "3",
  cpu: "500m",
  memory: "16Gi",
  gpus: "2",
  gpuMemory: "4096",
  gpuCores: "50",
  priorityClass: "high",
} as const;

test.each(TEMPLATES.map(({ name }) => name))("what is written into %s is read from it", (name) => {
  const text = templateText(name, QUEUE);
  for (const field of FIELDS.filter((each) => canWrite(text, each))) {
    expect(readFields(writeField(text, field, VALUES[field]))[field]).toBe(VALUES[field]);
  }
  // A TrainJob has its image from its runtime.
  expect(canWrite(text, "image")).toBe(name !== "TrainJob");
});

test("all fields together are in the text that the form writes", () => {
  let text = SLICE;
  for (const field of FIELDS) text = writeField(text, field, VALUES[field]);
  expect(readFields(text)).toEqual(VALUES);
  expect(text).toContain("  parallelism: 3\n  completions: 3\n");
  expect(text).toContain('command: ["python","train.py","--name","a b"]');
  expect(text).toContain("    kueue.x-k8s.io/queue-name: fast\n    kueue.x-k8s.io/priority-class: high\n");
});

test("GPUs are added where nothing asked for any", () => {
  const text = templateText("cpu", QUEUE);
  expect(writeField(text, "gpus", "1")).toContain('            limits:\n              nvidia.com/gpu: "1"\n');
});

test("an empty field takes its line away, and comments stay", () => {
  const text = writeField(`# mine\n${SLICE}`, "gpuCores", "");
  expect(text).not.toContain("gpucores");
  expect(text).toContain("# mine\n");
});

test("a command over several lines is left alone", () => {
  const text = SLICE.replace("          image:", "          command:\n            - sleep\n          image:");
  expect(writeField(text, "command", "other")).toBe(text);
  expect(readFields(text).command).toBeUndefined();
});

test("words in quotes belong together", () => {
  expect(wordsOf(`sh -c 'echo "hi"; sleep 1' "a \\"b\\""`)).toEqual([
    "sh",
    "-c",
    'echo "hi"; sleep 1',
    'a "b"',
  ]);
});

test("another LocalQueue replaces namespace and queue and nothing else", () => {
  const text = writeQueue(writeField(SLICE, "cpu", "7"), { namespace: "other", name: "slow" });
  expect(text).toContain("  namespace: other\n");
  expect(text).toContain("kueue.x-k8s.io/queue-name: slow");
  expect(readFields(text).cpu).toBe("7");
});

test("a name replaces the beginning of a generated one, and an empty name puts it back", () => {
  expect(readName(SLICE)).toEqual({ generated: "train-on-a-slice-" });
  const named = writeName(SLICE, "my-training", "train-on-a-slice-");
  expect(readName(named)).toEqual({ own: "my-training" });
  expect(named).toContain("\n  name: my-training\n");
  expect(named).not.toContain("generateName");
  expect(named).toContain("        - name: train\n");
  expect(writeName(named, "", "train-on-a-slice-")).toBe(SLICE);
  expect(writeName(SLICE, "42", "x-")).toContain('  name: "42"\n');
});

test("the names of several objects, and of one in JSON, are left to the text", () => {
  for (const text of [`${SLICE}---\n${SLICE}`, '{"metadata": {"name": "a"}}', ""]) {
    expect(readName(text)).toBeNull();
    expect(writeName(text, "b", "c-")).toBe(text);
  }
});

test.each(TEMPLATES.map(({ name }) => name))("the name of %s is that of its object alone", (name) => {
  const text = templateText(name, QUEUE);
  if (text.includes("\n---\n")) return expect(readName(text)).toBeNull();
  const written = writeName(text, "mine", "x-");
  expect(readName(written)).toEqual({ own: "mine" });
  const changed = written.split("\n").filter((line, at) => line !== text.split("\n")[at]);
  expect(changed).toEqual(["  name: mine"]);
});

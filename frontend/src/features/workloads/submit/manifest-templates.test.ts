import { expect, test } from "vitest";
import { TEMPLATES, templateText } from "./manifest-templates";

test("there is a template of every kind of job, each with a name of its own", () => {
  const names = TEMPLATES.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const kind of [
    "CronJob",
    "JobSet",
    "LeaderWorkerSet",
    "Pod",
    "Pod group",
    "RayJob",
    "StatefulSet",
    "TrainJob",
  ]) {
    expect(names).toContain(kind);
  }
});

test("a template is for the LocalQueue that is chosen", () => {
  for (const { name } of TEMPLATES) {
    const text = templateText(name, { namespace: "team", name: "fast" });
    expect(text).toContain("  namespace: team\n");
    expect(text).toContain("kueue.x-k8s.io/queue-name: fast\n");
    expect(text).toMatch(/^ {2}generateName: /m);
    expect(text).not.toMatch(/NAMESPACE|QUEUE|: demo$/m);
  }
});

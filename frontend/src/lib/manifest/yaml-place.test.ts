import { describe, expect, it } from "vitest";
import { apiVersionsIn, indentBelow, placeAt } from "./yaml-place";

/** The place at the mark `|`. */
function at(marked: string) {
  const offset = marked.indexOf("|");
  return placeAt(marked.slice(0, offset) + marked.slice(offset + 1), offset);
}

const QUEUE = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
`;

describe("the place in a text", () => {
  it("is a key, with the path to it and the keys beside it", () => {
    const place = at(`${QUEUE}spec:\n  cohortName: a\n  stop|Policy: Hold\n`);
    expect(place?.head).toEqual({ apiVersion: "kueue.x-k8s.io/v1beta2", kind: "ClusterQueue" });
    expect(place?.path).toEqual(["spec", "stopPolicy"]);
    expect(place?.part).toBe("key");
    expect(place?.siblings).toEqual(["cohortName", "stopPolicy"]);
  });

  it("is a value behind its key, with its bounds", () => {
    const text = `${QUEUE}spec:\n  stopPolicy: Hold  # for now\n`;
    const place = placeAt(text, text.indexOf("Hold") + 2);
    expect(place?.part).toBe("value");
    expect(text.slice(place?.from, place?.to)).toBe("Hold");
  });

  it("counts the items of lists, also at the column of their key", () => {
    const place = at(`${QUEUE}spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: a
    - name: b
      resources:
      - nam|e: cpu
`);
    expect(place?.path).toEqual(["spec", "resourceGroups", 0, "flavors", 1, "resources", 0, "name"]);
  });

  it("is a key that is being typed, by its column", () => {
    expect(at(`${QUEUE}spec:\n  preemption:\n    within|\n`)?.path).toEqual(["spec", "preemption", "within"]);
    expect(at(`${QUEUE}spec:\n  preemption:\n    a: b\n  |\n`)?.path).toEqual(["spec", ""]);
    expect(at(`${QUEUE}spec:\n  resourceGroups:\n  - |\n`)?.path).toEqual(["spec", "resourceGroups", 0, ""]);
  });

  it("knows the kind that stands below it, and that of its own document only", () => {
    expect(at("spec:\n  sto|p: 1\nkind: Cohort\napiVersion: v1\n")?.head?.kind).toBe("Cohort");
    expect(at(`${QUEUE}---\nsp|ec:\n`)?.head).toBeNull();
    expect(at(`---\nkind: A\napiVersion: v1\nsp|ec:\n---\nkind: B\napiVersion: v1\n`)?.head?.kind).toBe("A");
  });

  it("is in the innermost object that names a kind", () => {
    const place = at(
      "apply:\n- apiVersion: kueue.x-k8s.io/v1beta2\n  kind: Cohort\n  spec:\n    par|entName: a\n",
    );
    expect(place?.head?.kind).toBe("Cohort");
    expect(place?.path).toEqual(["spec", "parentName"]);
  });

  it("is nowhere in a comment, in a text of several lines and between documents", () => {
    expect(at(`${QUEUE}# sp|ec: here\n`)).toBeNull();
    const text = `${QUEUE}data:\n  text: >-\n    spec: here\n`;
    expect(placeAt(text, text.indexOf("here"))).toBeNull();
    expect(placeAt(`${QUEUE}---\n`, QUEUE.length + 1)).toBeNull();
  });
});

it("finds each version once", () => {
  expect(apiVersionsIn(`${QUEUE}---\n${QUEUE}---\napiVersion: "v1"\n`)).toEqual([
    "kueue.x-k8s.io/v1beta2",
    "v1",
  ]);
});

it("indents below a key that opens a block, and keeps the column of other entries", () => {
  expect(indentBelow("spec:", "")).toBe(2);
  expect(indentBelow("spec:  # the state", "    a: 1")).toBe(4);
  expect(indentBelow("  a: 1", "")).toBe(2);
  expect(indentBelow("  - name: a", "")).toBe(4);
  expect(indentBelow("    flavors:", "    - name: a")).toBe(6);
});

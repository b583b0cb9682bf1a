import { expect, it } from "vitest";
import { toYaml } from "./yaml";

it("writes objects and lists in blocks, as kubectl does", () => {
  const text = toYaml({
    kind: "ClusterQueue",
    metadata: { name: "research", labels: {} },
    spec: {
      namespaceSelector: {},
      resourceGroups: [
        {
          coveredResources: ["cpu"],
          flavors: [{ name: "a100", resources: [{ name: "cpu", nominalQuota: "8" }] }],
        },
      ],
      list: [],
      nested: [[1, 2], [true]],
    },
  });
  expect(text).toBe(`kind: ClusterQueue
metadata:
  name: research
  labels: {}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources:
        - cpu
      flavors:
        - name: a100
          resources:
            - name: cpu
              nominalQuota: "8"
  list: []
  nested:
    - - 1
      - 2
    - - true
`);
});

it.each([
  ["10Gi", "10Gi"],
  ["500m", "500m"],
  ["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta2"],
  ["gpu:on", "gpu:on"],
  ["8", '"8"'],
  ["1e3", '"1e3"'],
  ["1E", '"1E"'],
  ["yes", '"yes"'],
  ["null", '"null"'],
  ["", '""'],
  ["a: b", '"a: b"'],
  ["ends:", '"ends:"'],
  ["two\nlines", '"two\\nlines"'],
  ["- item", '"- item"'],
  ["2026-01-05", '"2026-01-05"'],
])("writes the text %j so that it is read as that text", (text, written) => {
  expect(toYaml({ a: text })).toBe(`a: ${written}\n`);
});

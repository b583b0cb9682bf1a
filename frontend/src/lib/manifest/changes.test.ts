import { describe, expect, it } from "vitest";
import { carriedOver, changes, conflicts, pathText } from "./changes";
import { authored, read, write } from "./object";

const queue = (cpu: string, memory: string, more: Record<string, string> = {}) => ({
  spec: {
    ...more,
    resourceGroups: [
      {
        coveredResources: ["cpu", "memory"],
        flavors: [
          {
            name: "a100",
            resources: [
              { name: "cpu", nominalQuota: cpu },
              { name: "memory", nominalQuota: memory },
            ],
          },
        ],
      },
    ],
  },
});

describe("changes", () => {
  it("names items of a list, wherever they stand", () => {
    const [found, ...others] = changes(queue("8", "1Gi"), queue("9", "1Gi"));
    expect(others).toEqual([]);
    expect(pathText(found?.path ?? [], queue("9", "1Gi"))).toBe(
      "spec.resourceGroups[0].flavors[a100].resources[cpu].nominalQuota",
    );
    expect([found?.before, found?.after]).toEqual(["8", "9"]);
  });

  it("are none where nothing differs but the order of keys", () => {
    expect(changes({ a: 1, b: [2] }, { b: [2], a: 1 })).toEqual([]);
  });

  it("tell what is new and what is gone", () => {
    expect(changes({ a: 1 }, { b: 2 })).toEqual([
      { path: ["a"], before: 1, after: undefined },
      { path: ["b"], before: undefined, after: 2 },
    ]);
  });
});

describe("two who edit the same object", () => {
  const base = queue("8", "1Gi");

  it("lose nothing where they changed different fields", () => {
    const mine = queue("9", "1Gi");
    const now = queue("8", "2Gi", { stopPolicy: "Hold" });
    expect(carriedOver(base, mine, now)).toEqual(queue("9", "2Gi", { stopPolicy: "Hold" }));
    expect(conflicts(changes(base, now), changes(base, mine))).toEqual([]);
  });

  it("are told of the same field, and the last one's value stands", () => {
    const mine = queue("9", "1Gi");
    const now = queue("10", "1Gi");
    expect(conflicts(changes(base, now), changes(base, mine))).toHaveLength(1);
    expect(carriedOver(base, mine, now)).toEqual(mine);
  });

  it("do not differ where both wrote the same", () => {
    const both = queue("9", "1Gi");
    expect(conflicts(changes(base, both), changes(base, both))).toEqual([]);
  });

  it("keep what the other added, and what one of them removed stays away", () => {
    const names = (...all: string[]) => all.map((name) => ({ name }));
    expect(carriedOver(names("a", "b"), names("a"), names("a", "b", "c"))).toEqual(names("a", "c"));
    expect(carriedOver({ a: 1 }, {}, { a: 1, b: 2 })).toEqual({ b: 2 });
  });
});

describe("an object", () => {
  it("is written without what the server adds", () => {
    const metadata = { name: "q", uid: "u", resourceVersion: "3", generation: 3, labels: { a: "b" } };
    const manifest = { apiVersion: "v1", kind: "Queue", metadata, spec: { a: 1 }, status: { b: 2 } };
    expect(authored(manifest)).toEqual({
      apiVersion: "v1",
      kind: "Queue",
      metadata: { name: "q", labels: { a: "b" } },
      spec: { a: 1 },
    });
  });

  it("has its fields set and taken away, with the mappings that are left empty", () => {
    const path = ["spec", "fairSharing", "weight"];
    const weighted = write({ spec: { a: 1 } }, path, "2");
    expect(read(weighted, path)).toBe("2");
    expect(write(weighted, path, undefined)).toEqual({ spec: { a: 1 } });
    expect(write({ list: [{ a: 1, b: 2 }] }, ["list", 0, "a"], undefined)).toEqual({ list: [{ b: 2 }] });
  });
});

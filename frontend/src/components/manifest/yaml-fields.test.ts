import { CompletionContext } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";
import { expect, it } from "vitest";
import type { DescribedKinds, FieldSchema } from "@/lib/manifest/field-docs";
import { completions, helpAt } from "./yaml-fields";

const VERSION = "kueue.x-k8s.io/v1beta2";
const SCHEMA: FieldSchema = {
  type: "object",
  properties: {
    metadata: {
      type: "object",
      required: ["name"],
      properties: { name: { type: "string", description: "Its name." } },
    },
    spec: {
      type: "object",
      properties: {
        stopPolicy: {
          type: "string",
          description: "Whether it admits.",
          enum: ["None", "Hold", "HoldAndDrain"],
        },
        resourceGroups: {
          type: "array",
          items: { type: "object", properties: {} },
          description: "Its quotas.",
        },
      },
    },
    status: { type: "object", description: "Written by the server." },
  },
};
const DESCRIBED: DescribedKinds = {
  versions: [VERSION],
  kinds: new Map([[VERSION, new Map([["ClusterQueue", SCHEMA]])]]),
};
const HEAD = `apiVersion: ${VERSION}\nkind: ClusterQueue\n`;

/** The names that are offered at the end of a text. */
function offered(text: string, explicit = true): string[] {
  const context = new CompletionContext(EditorState.create({ doc: text }), text.length, explicit);
  return completions(context, DESCRIBED)?.options.map(({ label }) => label) ?? [];
}

it("tells the type, the choices and the meaning of the field at a place", () => {
  const text = `${HEAD}spec:\n  stopPolicy: None\n`;
  const help = helpAt(text, text.indexOf("stopPolicy") + 1, DESCRIBED);
  expect(help).toMatchObject({ path: "spec.stopPolicy", type: "string", description: "Whether it admits." });
  expect(help?.choices).toEqual(["None", "Hold", "HoldAndDrain"]);
  const named = `${HEAD}metadata:\n  name: a\n`;
  expect(helpAt(named, named.indexOf("name: a"), DESCRIBED)?.isRequired).toBe(true);
});

it("says nothing of a field that is not described", () => {
  const text = `${HEAD}spec:\n  other: 1\n`;
  expect(helpAt(text, text.indexOf("other"), DESCRIBED)).toBeNull();
});

it("offers the fields that an object may still get, without its status", () => {
  expect(offered(`${HEAD}s`)).toEqual(["metadata", "spec"]);
  expect(offered(`${HEAD}spec:\n  stopPolicy: None\n  r`)).toEqual(["resourceGroups"]);
  expect(offered("k")).toEqual(["apiVersion", "kind"]);
});

it("offers the values of a choice, the kinds of a version and the versions", () => {
  expect(offered(`${HEAD}spec:\n  stopPolicy: H`)).toEqual(["None", "Hold", "HoldAndDrain"]);
  expect(offered("apiVersion: k")).toEqual([VERSION]);
  expect(offered(`apiVersion: ${VERSION}\nkind: C`)).toEqual(["ClusterQueue"]);
});

it("offers nothing by itself before anything is typed", () => {
  expect(offered(`${HEAD}spec:\n  `, false)).toEqual([]);
  expect(offered(`${HEAD}spec:\n  `, true)).toEqual(["stopPolicy", "resourceGroups"]);
});

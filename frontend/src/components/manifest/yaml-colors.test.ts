import { expect, test } from "vitest";
import { yamlTokens } from "./yaml-colors";

const parts = (line: string) => yamlTokens(line).map(({ text, part }) => `${part}<${text}>`);

test("keys, values and marks of a line are told apart", () => {
  expect(parts("kind: Job")).toEqual(["key<kind>", "mark<:>", "string< Job>"]);
  expect(parts("  - name: main")).toEqual(["mark<  - >", "key<name>", "mark<:>", "string< main>"]);
  expect(parts("parallelism: 4")).toEqual(["key<parallelism>", "mark<:>", "number< 4>"]);
  expect(parts("suspend: true")).toEqual(["key<suspend>", "mark<:>", "number< true>"]);
  expect(parts("nvidia.com/gpu: '4'")).toEqual(["key<nvidia.com/gpu>", "mark<:>", "string< '4'>"]);
  expect(parts("# a comment: of ours")).toEqual(["comment<# a comment: of ours>"]);
  expect(parts("- http://example.org/x")).toEqual(["mark<- >", "string<http://example.org/x>"]);
});

test.each([
  "",
  "   ",
  "a:b",
  "- - x",
  '"a: b": c',
  "message: 'it''s: here'",
  "---",
  "  text that goes on: x",
])("the tokens of %j are the line", (line) => {
  expect(
    yamlTokens(line)
      .map(({ text }) => text)
      .join(""),
  ).toBe(line);
});

/** The parts of a line of YAML as the server writes it: enough to colour it, without the script of the editor. */

export type YamlPart = "plain" | "key" | "mark" | "string" | "number" | "comment";

export interface YamlToken {
  text: string;
  part: YamlPart;
}

const LINE =
  /^(?<indent>\s*(?:- +)*)(?:(?<key>[^\s#"'{[&*!|>%@`-][^:#]*|"[^"]*"|'[^']*'|-[^\s:][^:#]*)(?<colon>:)(?=\s|$))?(?<value>.*)$/;
const NUMBER = /^(?:[-+]?[\d.]+(?:e[-+]?\d+)?|true|false|null|~)$/i;

/** The tokens of a line; their texts together are the line. */
export function yamlTokens(line: string): YamlToken[] {
  if (line.trimStart().startsWith("#")) return [{ text: line, part: "comment" }];
  const found = LINE.exec(line)?.groups;
  if (found === undefined) return [{ text: line, part: "plain" }];
  const { indent = "", key = "", colon = "", value = "" } = found;
  const parts: YamlToken[] = [
    { text: indent, part: "mark" },
    { text: key, part: "key" },
    { text: colon, part: "mark" },
    { text: value, part: NUMBER.test(value.trim()) ? "number" : "string" },
  ];
  return parts.filter(({ text }) => text !== "");
}

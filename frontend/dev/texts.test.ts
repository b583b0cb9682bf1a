/** Every text on screen is in the catalogues: nothing is missing, and nothing visible is written beside them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { formatter } from "@lingui/format-po";
import { extractMessagesFromFiles } from "@lingui/native-tools";
import ts from "typescript";
import { expect, test } from "vitest";

const SOURCES = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && !/\.test\.|schema\.gen|\.d\.ts$|^test-/.test(name))
  .map((name) => join("src", name));

const PLACEHOLDER = /\{(\w+)(?=[,}])|<(\d+)\/?>/g;

function placeholders(text: string): string[] {
  return [...new Set([...text.matchAll(PLACEHOLDER)].map(([found]) => found))].sort();
}

async function catalogue(language: string) {
  const filename = `src/locales/${language}.po`;
  const context = { locale: language, sourceLocale: "en", filename };
  return await formatter().parse(readFileSync(filename, "utf8"), context);
}

test("the Chinese catalogue has each text of the pages, and no other", { timeout: 120_000 }, async () => {
  const { messages } = await extractMessagesFromFiles(SOURCES);
  const texts = await catalogue("zh");
  const missing = messages.filter(({ id }) => !texts[id]?.translation).map(({ message }) => message);
  expect(missing, "write them in src/locales/zh.po after `npm run texts`").toEqual([]);
  const known = new Set(messages.map(({ id }) => id));
  expect(Object.keys(texts).filter((id) => !known.has(id))).toEqual([]);
});

test("a translation has the placeholders of its text", async () => {
  const wrong = Object.values(await catalogue("zh")).filter(
    ({ message = "", translation = "" }) => placeholders(message).join() !== placeholders(translation).join(),
  );
  expect(wrong).toEqual([]);
});

/** Names that are the same in every language. */
const NAMES =
  /^(… · kueueweb|kueueweb|ClusterQueue|JSON|YAML|CSV|Inter Variable, sans-serif|https?:.*|[A-Z]{4}-[A-Z]{4})$/;
/** Attributes and fields that readers see or hear. */
const READ =
  /^(label|title|placeholder|description|message|hint|note|meaning|done|consequence|header|text|alt|aria-label|aria-description|aria-valuetext|name|dead|empty|legend)$/;
const MACROS = /^(t|msg|plural|select|selectOrdinal)$/;

function isWords(text: string): boolean {
  return /\p{L}{2,}/u.test(text) && !NAMES.test(text.trim());
}

/** A sentence or a capitalised word, and no token, path or style. */
function isProse(text: string): boolean {
  return isWords(text) && (/^[A-Z][a-z]+$/.test(text) || /^[A-Za-z][a-z']+,? [a-z]+( |$|,)/.test(text));
}

/** A text of several words is for readers. */
function isSentence(text: string): boolean {
  return (
    /^\p{L}[^{}<>=\n]*$/u.test(text) &&
    text.split(" ").filter((word) => /^\p{L}+[,.:;]?$/u.test(word)).length > 4
  );
}

function literalText(node: ts.Node): string | null {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return null;
  return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join("…");
}

/** The values that an expression may have: both arms of a choice, each side of `??`. */
function outcomes(node: ts.Expression): ts.Expression[] {
  if (ts.isParenthesizedExpression(node)) return outcomes(node.expression);
  if (ts.isConditionalExpression(node)) return [...outcomes(node.whenTrue), ...outcomes(node.whenFalse)];
  if (ts.isBinaryExpression(node) && /^(\?\?|\|\||&&|\+)$/.test(node.operatorToken.getText()))
    return [...outcomes(node.left), ...outcomes(node.right)];
  return [node];
}

/** The visible texts of a file that no macro marks, each with its line. */
function unmarked(path: string, content: string): string[] {
  const source = ts.createSourceFile(path, content, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const report = (node: ts.Node, text: string) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    found.push(`${path}:${line + 1} ${text.trim()}`);
  };
  const look = (expression: ts.Expression | undefined, visible: (text: string) => boolean) => {
    for (const outcome of expression === undefined ? [] : outcomes(expression)) {
      const text = literalText(outcome);
      if (text !== null && visible(text)) report(outcome, text);
    }
  };
  const visit = (node: ts.Node, marked: boolean, inFunction: boolean): void => {
    const tag = ts.isJsxElement(node) ? node.openingElement.tagName.getText() : "";
    const inside = marked || tag === "Trans";
    if (ts.isJsxText(node) && !marked && isWords(node.text)) report(node, node.text);
    if (ts.isJsxExpression(node) && !ts.isJsxAttribute(node.parent)) look(node.expression, isWords);
    if (ts.isJsxAttribute(node) && READ.test(node.name.getText()) && tagOf(node) !== "Icon") {
      const value = node.initializer;
      if (value !== undefined && ts.isStringLiteral(value) && isProse(value.text)) report(node, value.text);
      if (value !== undefined && ts.isJsxExpression(value)) look(value.expression, isProse);
    }
    if (ts.isPropertyAssignment(node) && READ.test(node.name.getText())) look(node.initializer, isProse);
    if (ts.isReturnStatement(node)) look(node.expression, isProse);
    if (ts.isArrowFunction(node) && !ts.isBlock(node.body)) look(node.body, isProse);
    if (ts.isTaggedTemplateExpression(node) && node.tag.getText() === "t" && !inFunction)
      report(node, "is translated once, when the module is read");
    if (isMacro(node) || ts.isThrowStatement(node)) return;
    if (!ts.isJsxAttribute(node.parent ?? node)) look(isLiteral(node) ? node : undefined, isSentence);
    const within = inFunction || ts.isFunctionLike(node);
    ts.forEachChild(node, (child) => visit(child, inside, within));
  };
  visit(source, false, false);
  return [...new Set(found)];
}

function isLiteral(node: ts.Node): node is ts.Expression {
  return literalText(node) !== null;
}

function tagOf(attribute: ts.JsxAttribute): string {
  return attribute.parent.parent.tagName.getText();
}

function isMacro(node: ts.Node): boolean {
  if (ts.isTaggedTemplateExpression(node)) return MACROS.test(node.tag.getText());
  if (ts.isCallExpression(node)) return MACROS.test(node.expression.getText());
  return ts.isJsxSelfClosingElement(node) && /^(Plural|Select)$/.test(node.tagName.getText());
}

/** Statuses and conditions of Kubernetes and Kueue, which are compared and not shown, and the types of `kubectl explain`. */
const TOKENS = new Set(["Pending", "Infinity", "Quantity", "Object"]);

test("no visible text is written outside the catalogues", { timeout: 120_000 }, () => {
  const found = SOURCES.flatMap((path) => unmarked(path, readFileSync(path, "utf8")));
  expect(found.filter((line) => !TOKENS.has(line.split(" ").at(-1) ?? ""))).toEqual([]);
});

test.each([
  ["text of an element", "const A = () => <p>Nothing yet</p>;"],
  ["an attribute", 'const A = () => <B title="Nothing yet" />;'],
  ["one arm of a choice", 'const A = (x: boolean) => <B title={x ? "Nothing yet" : y} />;'],
  ["a field", 'const a = () => ({ label: "Submitted" });'],
  ["what a function returns", 'function a() { return "It is on hold."; }'],
  ["a sentence in a list", 'const a = [["Idle", "Nothing has been decided yet."]];'],
  ["a template", "const A = () => <p>{`$" + "{n} slices`}</p>;"],
  ["a mark outside of functions", "const a = t`Submitted`;"],
])("the search finds %s", (_, code) => {
  expect(unmarked("a.tsx", code)).toHaveLength(1);
});

test.each([
  "const A = () => <p><Trans>Nothing yet</Trans></p>;",
  'const A = () => <B title={t`Nothing yet`} to="/queues" />;',
  'const A = () => <Plural value={n} one="# pod" other="# pods" />;',
  'const a = () => ({ label: name, cluster_queue: "some queue" });',
])("the search lets %s be", (code) => {
  expect(unmarked("a.tsx", code)).toEqual([]);
});

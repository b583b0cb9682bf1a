import { i18n } from "@lingui/core";
import { afterEach, expect, test } from "vitest";
import { numbers, preferredLanguage } from "./language";
import { formatAgo, formatDuration } from "./time";
import { stateLook } from "./words/workload-state";

afterEach(() => i18n.loadAndActivate({ locale: "en", messages: {} }));

test.each([
  [null, ["de-DE", "zh-TW", "en"], "zh"],
  [null, ["en-GB", "zh-CN"], "en"],
  [null, ["fr"], "en"],
  [null, [], "en"],
  ["zh", ["en-GB"], "zh"],
  ["en", ["zh-CN"], "en"],
  ["tlh", ["zh-CN"], "zh"],
] as const)("kept %s, wanted %s: %s", (kept, wanted, found) => {
  expect(preferredLanguage(kept, wanted)).toBe(found);
});

test("words, ages and lists follow the language", async () => {
  expect(stateLook("Running").label).toBe("Running");
  expect(formatDuration(200)).toBe("3m 20s");
  const { messages } = await import("../locales/zh.po");
  i18n.loadAndActivate({ locale: "zh", messages });
  expect(stateLook("Running").label).toBe("运行中");
  expect(formatDuration(200)).toBe("3 分钟 20 秒");
  expect(formatAgo("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:03:20Z"))).toBe("3 分钟前");
  expect(numbers({ maximumFractionDigits: 1 })(1234.56)).toBe("1,234.6");
});

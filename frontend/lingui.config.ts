import { formatter } from "@lingui/format-po";
import { createSwcExtractor } from "@lingui/native-tools";

export default {
  sourceLocale: "en",
  // English stands in the source; every other language has a catalogue.
  locales: ["zh"],
  catalogs: [{ path: "<rootDir>/src/locales/{locale}", include: ["src"], exclude: ["**/*.test.*"] }],
  extractors: [createSwcExtractor()],
  format: formatter({ lineNumbers: false }),
  orderBy: "origin" as const,
};

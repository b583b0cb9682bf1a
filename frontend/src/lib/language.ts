/** The languages of the pages: which one the reader gets, and the formats that follow it. */
import { i18n } from "@lingui/core";

/** By the names that their readers know. */
export const LANGUAGES = { en: "English", zh: "简体中文" } as const;
export type Language = keyof typeof LANGUAGES;

const KEPT = "kueueweb-language";

/** English is in the source; the catalogue of another language is loaded when a reader chooses it. */
const CATALOGUES: Record<Language, () => Promise<{ messages: Parameters<typeof i18n.load>[1] }>> = {
  en: async () => ({ messages: {} }),
  zh: () => import("../locales/zh.po"),
};

function isLanguage(value: string | null): value is Language {
  return value !== null && Object.hasOwn(LANGUAGES, value);
}

/** The reader's choice, or else the first language of the browser that we have. */
export function preferredLanguage(kept: string | null, wanted: readonly string[]): Language {
  if (isLanguage(kept)) return kept;
  return wanted.map((tag) => tag.toLowerCase().split("-")[0] ?? "").find(isLanguage) ?? "en";
}

export function keptLanguage(): Language {
  return preferredLanguage(window.localStorage.getItem(KEPT), window.navigator.languages);
}

/** Shows the pages in the language. English, where its catalogue does not come. */
export async function speak(language: Language): Promise<void> {
  const { messages } = await CATALOGUES[language]();
  document.documentElement.lang = language === "zh" ? "zh-CN" : language;
  i18n.loadAndActivate({ locale: language, messages });
}

/** Does what `speak` does, also after the page is opened again. */
export async function chooseLanguage(language: Language): Promise<void> {
  await speak(language);
  window.localStorage.setItem(KEPT, language);
}

/** Names in the order of the alphabet, numbers in them by their value. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;

/** A format that is made once for each language. */
export function inLanguage<Format>(make: (locale: string) => Format): () => Format {
  const made = new Map<string, Format>();
  return () => {
    const known = made.get(i18n.locale) ?? make(i18n.locale);
    made.set(i18n.locale, known);
    return known;
  };
}

/** Numbers with the digits' groups and signs of the language. */
export function numbers(options: Intl.NumberFormatOptions): (value: number) => string {
  const format = inLanguage((locale) => new Intl.NumberFormat(locale, options));
  return (value) => format().format(value);
}

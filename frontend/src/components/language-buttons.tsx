/** The language of the pages: that of the browser until the reader chooses one. */
import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Button, Group } from "@mantine/core";
import { chooseLanguage, LANGUAGES, type Language } from "@/lib/language";

export function LanguageButtons() {
  return (
    <Group gap={4} component="nav" aria-label={t`Language`}>
      {Object.entries(LANGUAGES).map(([language, name]) => (
        <Button
          key={language}
          lang={language}
          size="compact-xs"
          variant="subtle"
          color="gray"
          aria-pressed={language === i18n.locale}
          onClick={() => void chooseLanguage(language as Language)}
        >
          {name}
        </Button>
      ))}
    </Group>
  );
}

/** The language of the pages: that of the browser until the reader chooses one. */
import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { ActionIcon, Menu } from "@mantine/core";
import { chooseLanguage, LANGUAGES, type Language } from "@/lib/language";
import { Icon } from "./icon";

/** Within a menu; each language under its own name. */
export function LanguageItems() {
  return Object.entries(LANGUAGES).map(([language, name]) => (
    <Menu.Item
      key={language}
      lang={language}
      leftSection={<Icon name="language" size={16} />}
      rightSection={language === i18n.locale ? <Icon name="check" size={14} /> : null}
      onClick={() => void chooseLanguage(language as Language)}
    >
      {name}
    </Menu.Item>
  ));
}

export function LanguageSwitch() {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t`Language`}>
          <Icon name="language" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <LanguageItems />
      </Menu.Dropdown>
    </Menu>
  );
}

/** Light, dark, or as the system says. */
import { t } from "@lingui/core/macro";
import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import { Icon } from "@/components/icon";

const schemes = () =>
  [
    { value: "light", label: t`Light`, icon: "sun" },
    { value: "dark", label: t`Dark`, icon: "moon" },
    { value: "auto", label: t`Same as system`, icon: "auto" },
  ] as const;

export function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const current = schemes().find((scheme) => scheme.value === colorScheme) ?? schemes()[2];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t`Theme: ${current.label}`}>
          <Icon name={current.icon} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes().map((scheme) => (
          <Menu.Item
            key={scheme.value}
            leftSection={<Icon name={scheme.icon} size={16} />}
            rightSection={scheme.value === colorScheme ? <Icon name="check" size={14} /> : null}
            onClick={() => setColorScheme(scheme.value)}
          >
            {scheme.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** The user, their rights, and the way out. */
import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Menu, Text } from "@mantine/core";
import { isClusterAdmin, useLogout } from "@/api/session";
import type { Session } from "@/api/types";
import { Icon } from "@/components/icon";
import { chooseLanguage, LANGUAGES, type Language } from "@/lib/language";
import { basePath } from "@/lib/url/base-path";

function describeRoles(session: Session): string {
  if (isClusterAdmin(session)) return t`Cluster admin`;
  if (session.roles.length === 0) return t`No role yet`;
  return session.roles
    .map(({ role, namespace, cohort, cluster }) => {
      const where =
        cohort !== null
          ? t`${role} below cohort ${cohort}`
          : namespace === null
            ? t`${role} in all namespaces`
            : t`${role} in ${namespace}`;
      return cluster === null ? where : t`${where} of cluster ${cluster}`;
    })
    .join(", ");
}

/** The language is that of the browser until the reader chooses one; each stands under its own name. */
function LanguageItems() {
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

export interface UserMenuProps {
  session: Session;
  onShortcuts: () => void;
  onTour: () => void;
}

export function UserMenu({ session, onShortcuts, onTour }: UserMenuProps) {
  const logout = useLogout();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t`User: ${session.user?.username ?? ""}`}
        >
          <Icon name="user" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text fw={600} c="var(--mantine-color-text)">
            {session.user?.username}
          </Text>
          <Text size="xs">{describeRoles(session)}</Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="keyboard" size={16} />} onClick={onShortcuts}>
          <Trans>Keyboard shortcuts</Trans>
        </Menu.Item>
        <Menu.Item leftSection={<Icon name="question" size={16} />} onClick={onTour}>
          <Trans>Tour of eight steps</Trans>
        </Menu.Item>
        {session.user?.may_use_admin && (
          <Menu.Item component="a" href={`${basePath}/admin/`} leftSection={<Icon name="edit" size={16} />}>
            <Trans>Admin</Trans>
          </Menu.Item>
        )}
        <Menu.Divider />
        <LanguageItems />
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="logout" size={16} />} onClick={() => logout.mutate()}>
          <Trans>Log out</Trans>
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

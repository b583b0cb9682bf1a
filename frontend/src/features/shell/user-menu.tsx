/** Who is logged in, with which rights, and the way out. */
import { ActionIcon, Menu, Text } from "@mantine/core";
import { isClusterAdmin, useLogout } from "@/api/session";
import type { Session } from "@/api/types";
import { Icon } from "@/components/icon";

function describeRoles(session: Session): string {
  if (isClusterAdmin(session)) return "Cluster admin";
  if (session.roles.length === 0) return "No role yet";
  return session.roles
    .map(({ role, namespace, cohort, cluster }) => {
      const where = cohort === null ? `in ${namespace ?? "all namespaces"}` : `below cohort ${cohort}`;
      return `${role} ${where}${cluster === null ? "" : ` of cluster ${cluster}`}`;
    })
    .join(", ");
}

export function UserMenu({ session, onShortcuts }: { session: Session; onShortcuts: () => void }) {
  const logout = useLogout();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={`User: ${session.user?.username ?? ""}`}
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
          Keyboard shortcuts
        </Menu.Item>
        {session.user?.may_use_admin && (
          <Menu.Item component="a" href="/admin/" leftSection={<Icon name="edit" size={16} />}>
            Admin
          </Menu.Item>
        )}
        <Menu.Item leftSection={<Icon name="logout" size={16} />} onClick={() => logout.mutate()}>
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** The users with their rights; for admins and auditors. */
import { t } from "@lingui/core/macro";
import { Grid, Tabs } from "@mantine/core";
import type { Session } from "@/api/types";
import { PageHeader } from "@/components/page-header";
import { Accounts } from "./accounts";
import { NewAccount } from "./new-account";
import { RoleForm } from "./role-form";
import { Roles } from "./roles";

export interface UsersPageProps {
  session: Session;
  tab: UsersTab;
  onTab: (tab: UsersTab) => void;
}

export type UsersTab = "roles" | "accounts";

export function UsersPage({ session, tab, onTab }: UsersPageProps) {
  const admin = session.user?.is_cluster_admin ?? false;
  return (
    <>
      <PageHeader title={t`Users`} />
      <Tabs
        value={tab}
        onChange={(value) => onTab(value === "accounts" ? "accounts" : "roles")}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="roles">{t`Roles`}</Tabs.Tab>
          {admin && <Tabs.Tab value="accounts">{t`Accounts and tokens`}</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="roles">
          <Grid gap="md">
            <Grid.Col span={{ base: 12, lg: admin ? 8 : 12 }}>
              <Roles editable={admin} />
            </Grid.Col>
            {admin && (
              <Grid.Col span={{ base: 12, lg: 4 }}>
                <RoleForm />
              </Grid.Col>
            )}
          </Grid>
        </Tabs.Panel>
        {admin && (
          <Tabs.Panel value="accounts">
            <Grid gap="md">
              <Grid.Col span={{ base: 12, lg: 8 }}>
                <Accounts />
              </Grid.Col>
              <Grid.Col span={{ base: 12, lg: 4 }}>
                <NewAccount />
              </Grid.Col>
            </Grid>
          </Tabs.Panel>
        )}
      </Tabs>
    </>
  );
}

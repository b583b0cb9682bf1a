/** One user: groups, tokens, and the switch that puts them out. */
import { t } from "@lingui/core/macro";
import { ActionIcon, Button, Group, Modal, Stack, TagsInput, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { UserRow, UserToken } from "@/api/types";
import { useChangeUser, useRevokeToken, userTokensQuery } from "@/api/users";
import { ErrorState } from "@/components/error-state";
import { Icon } from "@/components/icon";
import { originWords } from "./words";

export function AccountDialog({ user, onClose }: { user: UserRow; onClose: () => void }) {
  const changing = useChangeUser(user.username);
  return (
    <Modal opened onClose={onClose} title={user.username} size="lg">
      <Stack>
        <Text size="sm" c="var(--kw-muted)">
          {originWords(user.origin)}
          {user.email === "" ? "" : `, ${user.email}`}
        </Text>
        {changing.error !== null && (
          <ErrorState title={t`The account was not changed`} message={changing.error.message} />
        )}
        <Groups key={user.groups.join()} user={user} changing={changing} />
        <Tokens name={user.username} />
        <Group justify="space-between">
          <Text size="sm" maw={380}>
            {user.is_active
              ? t`A disabled user is logged out everywhere, and all of their tokens become invalid.`
              : t`The account is disabled. Its old tokens stay invalid.`}
          </Text>
          <Button
            color={user.is_active ? "red" : "blue"}
            variant="light"
            loading={changing.isPending}
            onClick={() => changing.mutate({ is_active: !user.is_active })}
          >
            {user.is_active ? t`Disable` : t`Enable`}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function Groups({ user, changing }: { user: UserRow; changing: ReturnType<typeof useChangeUser> }) {
  const [groups, setGroups] = useState(user.groups);
  const provided = user.origin === "provider";
  return (
    <Group align="end" gap="sm">
      <TagsInput
        style={{ flex: 1 }}
        label={t`Groups`}
        description={
          provided ? t`Set by the provider at each login.` : t`Roles are bound to groups by their names.`
        }
        disabled={provided}
        value={groups}
        onChange={setGroups}
      />
      {groups.join() !== user.groups.join() && (
        <Button variant="default" loading={changing.isPending} onClick={() => changing.mutate({ groups })}>
          {t`Save groups`}
        </Button>
      )}
    </Group>
  );
}

function Tokens({ name }: { name: string }) {
  const tokens = useQuery(userTokensQuery(name));
  const revoking = useRevokeToken(name);
  const error = tokens.error ?? revoking.error;
  return (
    <div>
      <Text size="sm" fw={500}>
        {t`Tokens`}
      </Text>
      {error !== null && <ErrorState title={t`Tokens`} message={error.message} />}
      {tokens.data?.results.length === 0 && (
        <Text size="sm" c="var(--kw-muted)">
          {t`None.`}
        </Text>
      )}
      <Stack component="ul" gap={4} p={0} m={0} style={{ listStyle: "none" }}>
        {tokens.data?.results.map((token) => (
          <Group component="li" key={token.id} justify="space-between" wrap="nowrap">
            <Text size="sm">{tokenWords(token)}</Text>
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={t`Revoke the token ${token.name || token.id}`}
              title={t`Revoke`}
              loading={revoking.isPending && revoking.variables === token.id}
              onClick={() => revoking.mutate(token.id)}
            >
              <Icon name="close" size={15} />
            </ActionIcon>
          </Group>
        ))}
      </Stack>
    </div>
  );
}

function tokenWords(token: UserToken): string {
  const used = day(token.last_used_at) ?? t`never`;
  const ends = day(token.expires_at) ?? t`until revoked`;
  return t`${token.name || token.id}: ${token.scope}, last used: ${used}, expires: ${ends}`;
}

function day(moment: string | null): string | null {
  return moment === null ? null : moment.slice(0, 10);
}

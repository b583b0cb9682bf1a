/** The door. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import {
  Button,
  Center,
  Divider,
  Group,
  Paper,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useLogin } from "@/api/session";
import type { Session } from "@/api/types";
import { ErrorState } from "@/components/error-state";
import { LanguageButtons } from "@/components/language-buttons";
import { refusalMessage } from "./refusals";

export interface LoginPageProps {
  methods: Session["login_methods"];
  /** Why the provider's login failed, from the address. */
  refused: string | undefined;
  /** The accounts of the demo: one click fills them in. */
  accounts: { username: string; password: string }[];
  /** The page to which the provider's login returns. */
  target: string;
  onLogin: () => void;
}

export function LoginPage({ methods, refused, accounts, target, onLogin }: LoginPageProps) {
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper p="xl" w={380} maw="100%" withBorder bg="var(--kw-card)">
        <Stack>
          <div>
            <Group justify="space-between" align="flex-start" wrap="nowrap">
              <Title order={1} fz={24}>
                kueueweb
              </Title>
              <LanguageButtons />
            </Group>
            <Text size="sm" c="var(--kw-muted)">
              <Trans>The control room for shared GPU clusters</Trans>
            </Text>
          </div>
          {refused !== undefined && <ErrorState title={t`Not logged in`} message={refusalMessage(refused)} />}
          {methods.provider !== null && (
            <Button component="a" href={`${methods.provider.url}?${new URLSearchParams({ next: target })}`}>
              {methods.provider.text}
            </Button>
          )}
          {methods.provider !== null && methods.password && <Divider label={t`or with a local account`} />}
          {methods.password && (
            <PasswordForm accounts={accounts} second={methods.provider !== null} onLogin={onLogin} />
          )}
        </Stack>
      </Paper>
    </Center>
  );
}

interface PasswordFormProps {
  accounts: LoginPageProps["accounts"];
  /** Whether another way is offered first. */
  second: boolean;
  onLogin: () => void;
}

function PasswordForm({ accounts, second, onLogin }: PasswordFormProps) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const login = useLogin();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        login.mutate({ username, password }, { onSuccess: onLogin });
      }}
    >
      <Stack>
        {login.error !== null && <ErrorState title={t`Not logged in`} message={loginMessage(login.error)} />}
        <TextInput
          label={t`User name`}
          name="username"
          autoComplete="username"
          autoFocus={!second}
          required
          value={username}
          onChange={(event) => setUsername(event.currentTarget.value)}
        />
        <PasswordInput
          label={t`Password`}
          name="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <Button type="submit" variant={second ? "default" : "filled"} loading={login.isPending}>
          <Trans>Log in</Trans>
        </Button>
        {accounts.length > 0 && (
          <Group gap="xs">
            <Text size="sm" c="var(--kw-muted)">
              <Trans>Demo:</Trans>
            </Text>
            {accounts.map((account) => (
              <Button
                key={account.username}
                size="compact-sm"
                variant="default"
                onClick={() => login.mutate(account, { onSuccess: onLogin })}
              >
                {account.username}
              </Button>
            ))}
          </Group>
        )}
      </Stack>
    </form>
  );
}

function loginMessage(error: Error): string {
  return error instanceof ApiError ? error.message : t`The login failed for an unknown reason.`;
}

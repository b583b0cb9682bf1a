/** The door. */
import { Button, Center, Group, Paper, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useLogin } from "@/api/session";
import { ErrorState } from "@/components/error-state";

export interface LoginPageProps {
  /** Of the demo: one click fills them in. */
  accounts: { username: string; password: string }[];
  onLogin: () => void;
}

export function LoginPage({ accounts, onLogin }: LoginPageProps) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const login = useLogin();
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper p="xl" w={380} maw="100%" withBorder bg="var(--kw-card)">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            login.mutate({ username, password }, { onSuccess: onLogin });
          }}
        >
          <Stack>
            <div>
              <Title order={1} fz={24}>
                kueueweb
              </Title>
              <Text size="sm" c="var(--kw-muted)">
                The control room for shared GPU clusters
              </Text>
            </div>
            {login.error !== null && <ErrorState title="Not logged in" message={loginMessage(login.error)} />}
            <TextInput
              label="User name"
              name="username"
              autoComplete="username"
              autoFocus
              required
              value={username}
              onChange={(event) => setUsername(event.currentTarget.value)}
            />
            <PasswordInput
              label="Password"
              name="password"
              autoComplete="current-password"
              required
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
            <Button type="submit" loading={login.isPending}>
              Log in
            </Button>
            {accounts.length > 0 && (
              <Group gap="xs">
                <Text size="sm" c="var(--kw-muted)">
                  Demo:
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
      </Paper>
    </Center>
  );
}

function loginMessage(error: Error): string {
  return error instanceof ApiError
    ? error.message
    : "The login failed for a reason that this page does not know.";
}

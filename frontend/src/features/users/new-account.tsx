/** Makes a local account, or one of a machine. */
import { t } from "@lingui/core/macro";
import { Button, PasswordInput, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useAddMachine, useAddUser } from "@/api/users";
import { ErrorState } from "@/components/error-state";
import { Panel } from "@/components/panel";
import { faultLines } from "@/lib/words/refusal";

export function NewAccount() {
  const user = useAddUser();
  const machine = useAddMachine();
  const [kind, setKind] = useState<"person" | "machine">("person");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const adding = kind === "person" ? user : machine;
  const done = {
    onSuccess: () => {
      setName("");
      setPassword("");
    },
  };
  const add = () =>
    kind === "person"
      ? user.mutate({ username: name.trim(), password, email: "" }, done)
      : machine.mutate({ name: name.trim(), description: "" }, done);
  return (
    <Panel title={t`Add an account`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add();
        }}
      >
        <Stack gap="sm">
          <SegmentedControl
            aria-label={t`Account for`}
            data={[
              { value: "person", label: t`A person` },
              { value: "machine", label: t`A machine` },
            ]}
            value={kind}
            onChange={(value) => setKind(value === "machine" ? "machine" : "person")}
          />
          <TextInput
            label={t`Name`}
            required
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          {kind === "person" && (
            <PasswordInput
              label={t`First password`}
              autoComplete="new-password"
              required
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
          )}
          {adding.error !== null && (
            <ErrorState
              title={t`The account was not added`}
              message={adding.error.message}
              details={faultLines(adding.error instanceof ApiError ? adding.error.errors : [])}
            />
          )}
          <Text size="xs" c="var(--kw-muted)">
            {kind === "person"
              ? t`The account has no role yet. Users of single sign-on need no account here.`
              : t`The account has no role and no password. Create its tokens with: kueueweb token create --service-account`}
          </Text>
          <Button type="submit" loading={adding.isPending}>
            {t`Add`}
          </Button>
        </Stack>
      </form>
    </Panel>
  );
}

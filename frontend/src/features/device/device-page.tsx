/** Lets a command line in: who is logged in here compares the code and says yes or no. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, List, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { deviceQuery, useDeviceAnswer } from "@/api/session";
import type { DeviceRequest } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";

export interface DevicePageProps {
  code: string;
  onCode: (code: string) => void;
}

export function DevicePage({ code, onCode }: DevicePageProps) {
  return (
    <>
      <PageHeader title={t`Log in from a command line`} />
      {code === "" ? <CodeForm onCode={onCode} /> : <Question code={code} />}
    </>
  );
}

/** The use and the duration of the token. */
function limitWords({ scope, namespaces, clusters, days }: DeviceRequest): string[] {
  const scopes: Record<DeviceRequest["scope"], string> = {
    metrics: t`Reads metrics only.`,
    read: t`Read-only: sees what you can see.`,
    submit: t`Reads, submits and changes workloads where you can.`,
    administer: t`All of your permissions.`,
  };
  return [
    scopes[scope],
    ...(namespaces.length > 0 ? [t`Only in the namespaces: ${namespaces.join(", ")}.`] : []),
    ...(clusters.length > 0 ? [t`Only in the clusters: ${clusters.join(", ")}.`] : []),
    plural(days, { one: "For # day, or until you revoke it.", other: "For # days, or until you revoke it." }),
  ];
}

function CodeForm({ onCode }: { onCode: (code: string) => void }) {
  const [typed, setTyped] = useState("");
  return (
    <Panel>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onCode(typed.trim());
        }}
      >
        <Group align="end">
          <TextInput
            label={t`Code shown by the command`}
            placeholder="BCDF-GHJK"
            required
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
          <Button type="submit">
            <Trans>Continue</Trans>
          </Button>
        </Group>
      </form>
    </Panel>
  );
}

function Question({ code }: { code: string }) {
  const asked = useQuery(deviceQuery(code));
  const reply = useDeviceAnswer(code);
  if (reply.isSuccess) {
    return (
      <EmptyState icon="check" title={reply.data ? t`The command line is logged in` : t`Refused`}>
        {reply.data
          ? t`You can close this page. \`kueueweb token list\` shows its new token.`
          : t`The command line gets no token.`}
      </EmptyState>
    );
  }
  const error = reply.error ?? asked.error;
  if (error !== null) return <ErrorState title={t`The code cannot be used`} message={error.message} />;
  if (asked.data === undefined) return null;
  return (
    <Panel>
      <Stack>
        <Text>
          <Trans>
            A command line called <b>{asked.data.name}</b> at {asked.data.address} asks to act as you. Does it
            show this code?
          </Trans>
        </Text>
        <Text fz={28} fw={600} ff="monospace">
          {asked.data.user_code}
        </Text>
        <List size="sm">
          {limitWords(asked.data).map((words) => (
            <List.Item key={words}>{words}</List.Item>
          ))}
        </List>
        <Text size="sm" c="var(--kw-muted)">
          <Trans>If you did not start the login yourself, refuse it.</Trans>
        </Text>
        <Group>
          <Button loading={reply.isPending} onClick={() => reply.mutate(true)}>
            <Trans>Log in the command line</Trans>
          </Button>
          <Button variant="default" disabled={reply.isPending} onClick={() => reply.mutate(false)}>
            <Trans>Refuse</Trans>
          </Button>
        </Group>
      </Stack>
    </Panel>
  );
}

/** What an operator sets of the cluster on screen, each with what follows from it; and what does not agree with it. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, Button, Group, Radio, Skeleton, Stack, Table, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useInfiniteQuery, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { clusterQuery, servedProblemsQuery, useClusterSettings } from "@/api/cluster-settings";
import { isClusterAdmin, sessionQuery } from "@/api/session";
import type { ClusterSettings } from "@/api/types";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { ErrorState } from "@/components/error-state";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";

interface Choice {
  label: string;
  /** What it is. */
  meaning: string;
  /** What to know before it is chosen. */
  warning: string;
}

const modes = (): Record<NonNullable<ClusterSettings["mode"]>, Choice> => ({
  observe: {
    label: t`Observe`,
    meaning: t`Another Kueue decides. Everything is shown, nothing is written to the cluster.`,
    warning: t`From now on our rows follow the cluster's Kueue. Objects here that it does not have go.`,
  },
  shadow: {
    label: t`Shadow`,
    meaning: t`Another Kueue decides, and our scheduler decides beside it. Nothing is written to the cluster.`,
    warning: t`From now on our rows follow the cluster's Kueue. Objects here that it does not have go.`,
  },
  schedule: {
    label: t`Schedule`,
    meaning: t`kueueweb decides: it starts jobs, stops them and places their pods.`,
    warning: t`Stop the cluster's Kueue first: while it runs, nothing is pushed. docs/switching.md has the procedure.`,
  },
});

const bindings = (): Record<NonNullable<ClusterSettings["device_binding"]>, Choice> => ({
  bind: {
    label: t`Bind`,
    meaning: t`kueueweb binds pods with devices. Of HAMi only the device plugin is needed.`,
    warning: t`Pods that HAMi's webhook has given to HAMi's scheduler are still bound by that one: keep it running until they have started. A job that is suspended and resumed makes pods for kueueweb.`,
  },
  pin: {
    label: t`Pin`,
    meaning: t`kueueweb chooses node and devices, HAMi's scheduler binds.`,
    warning: t`HAMi's webhook and scheduler must run. A pod that the webhook does not see waits at its gate, and the push worker's log names it. Pods that were made before are still bound by kueueweb.`,
  },
});

export function ClusterPage() {
  const name = useCluster();
  const { data: session } = useSuspenseQuery(sessionQuery());
  const cluster = useQuery(clusterQuery(name));
  const admin = isClusterAdmin(session);
  return (
    <>
      <PageHeader title={t`Cluster`} facts={t`What kueueweb does with ${name}`} />
      {cluster.isPending && <Skeleton height={320} />}
      {cluster.error !== null && (
        <ErrorState
          title={t`The cluster's settings cannot be shown`}
          message={cluster.error.message}
          onRetry={() => void cluster.refetch()}
        />
      )}
      {cluster.data !== undefined && (
        <Stack gap="md">
          <Setting
            title={t`Who decides`}
            choices={modes()}
            current={cluster.data.mode}
            change={(mode) => ({ mode })}
            admin={admin}
          />
          <Setting
            title={t`Who binds pods with devices`}
            choices={bindings()}
            current={cluster.data.device_binding}
            change={(device_binding) => ({ device_binding })}
            admin={admin}
          />
          {cluster.data.serves_kueue_objects && <Problems />}
        </Stack>
      )}
    </>
  );
}

interface SettingProps<Value extends string> {
  title: string;
  choices: Record<Value, Choice>;
  current: Value;
  change: (value: Value) => ClusterSettings;
  admin: boolean;
}

function Setting<Value extends string>({ title, choices, current, change, admin }: SettingProps<Value>) {
  const [asked, ask] = useState<Value | null>(null);
  const values = Object.keys(choices) as Value[];
  return (
    <Panel title={title}>
      <Radio.Group value={current} onChange={(value) => ask(value as Value)} aria-label={title}>
        <Stack gap="sm">
          {values.map((value) => (
            <Radio
              key={value}
              value={value}
              label={choices[value].label}
              description={choices[value].meaning}
              disabled={!admin}
            />
          ))}
        </Stack>
      </Radio.Group>
      {asked !== null && (
        <Question choice={choices[asked]} title={title} change={change(asked)} onClose={() => ask(null)} />
      )}
    </Panel>
  );
}

interface QuestionProps {
  choice: Choice;
  title: string;
  change: ClusterSettings;
  onClose: () => void;
}

function Question({ choice, title, change, onClose }: QuestionProps) {
  const cluster = useCluster();
  const settings = useClusterSettings(cluster);
  const { label } = choice;
  return (
    <ConfirmDialog
      action={t`Set ${label}`}
      target={t`in ${cluster}`}
      pending={settings.isPending}
      error={settings.error}
      onConfirm={() =>
        settings.mutate(change, {
          onSuccess: () => {
            notifications.show({ color: "teal", title, message: choice.label });
            onClose();
          },
        })
      }
      onClose={onClose}
    >
      <Text size="sm">{choice.meaning}</Text>
      <Alert color="yellow" variant="light">
        {choice.warning}
      </Alert>
    </ConfirmDialog>
  );
}

function Problems() {
  const problems = useInfiniteQuery(servedProblemsQuery(useCluster()));
  const rows = problems.data?.pages.flatMap((page) => page.results) ?? [];
  return (
    <Panel title={t`Objects that do not agree`} flush>
      {problems.error !== null && (
        <ErrorState
          title={t`They cannot be shown`}
          message={problems.error.message}
          onRetry={() => void problems.refetch()}
        />
      )}
      {problems.data !== undefined && rows.length === 0 && (
        <Text p="md" fz="sm" c="var(--kw-muted)">
          <Trans>None: Kueue's objects in the cluster and here say the same.</Trans>
        </Text>
      )}
      {rows.length > 0 && (
        <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={`${row.kind} ${row.namespace}/${row.name}`}>
                <Table.Td>
                  {row.kind} {row.namespace === "" ? row.name : `${row.namespace}/${row.name}`}
                </Table.Td>
                <Table.Td style={{ overflowWrap: "anywhere" }}>{row.problem}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {problems.hasNextPage && (
        <Group justify="center" p="sm">
          <Button variant="default" size="xs" onClick={() => void problems.fetchNextPage()}>
            <Trans>More</Trans>
          </Button>
        </Group>
      )}
    </Panel>
  );
}

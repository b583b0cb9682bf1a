/** How the scheduler of the cluster on screen is doing, what an operator sets of it, and what does not agree with it. */
import { t } from "@lingui/core/macro";
import { Alert, Radio, Skeleton, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { clusterQuery, useClusterSettings } from "@/api/cluster-settings";
import { isClusterAdmin, sessionQuery } from "@/api/session";
import type { ClusterSettings } from "@/api/types";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { ConfigurationPanel, DeviceSettingsPanel, type EditSetting } from "./configuration-panels";
import { DiagnosticsPanel } from "./diagnostics-panel";
import { NeighboursPanel } from "./neighbours-panel";
import { Problems } from "./problems";

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
    warning: t`From now on our objects follow the cluster's Kueue. Objects that it does not have are deleted here.`,
  },
  shadow: {
    label: t`Shadow`,
    meaning: t`Another Kueue decides; our scheduler decides the same workloads for comparison. Nothing is written to the cluster.`,
    warning: t`From now on our objects follow the cluster's Kueue. Objects that it does not have are deleted here.`,
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

const placements = (): Record<NonNullable<ClusterSettings["placement"]>, Choice> => ({
  devices: {
    label: t`Devices only`,
    meaning: t`Pods of workloads that ask for devices get nodes from kueueweb. The cluster's own scheduler places the others, as under Kueue.`,
    warning: t`Workloads without devices are admitted as soon as their quota is free, also where no node has room for them yet.`,
  },
  topology: {
    label: t`Devices and topologies`,
    meaning: t`Also pods in flavors with a topology get nodes that have room for them.`,
    warning: t`Workloads in flavors without a topology are admitted as soon as their quota is free, also where no node has room for them yet.`,
  },
  all: {
    label: t`All pods`,
    meaning: t`Every pod gets a node that has room for it. A workload that fits no node waits and says why.`,
    warning: t`Workloads wait if no known node has room for them. A flavor with autoscaled nodes needs the annotation kueueweb.io/quota-only.`,
  },
});

const serving = (): Record<"leave" | "follow", Choice> => ({
  leave: {
    label: t`Left alone`,
    meaning: t`Queues, flavors and workloads are created here, on the pages or over REST. Jobs in the cluster start all the same.`,
    warning: t`From now on kubectl shows Kueue's objects as they last were.`,
  },
  follow: {
    label: t`Served`,
    meaning: t`While kueueweb decides, Kueue's objects in the cluster and the objects here are kept in sync, with their status: kubectl and kueuectl work as with Kueue.`,
    warning: t`Kueue's CRDs must be there, and Kueue's controller must not run. What differs now is listed on this page.`,
  },
});

export function ClusterPage({ edit }: { edit: EditSetting }) {
  const name = useCluster();
  const { data: session } = useSuspenseQuery(sessionQuery());
  const cluster = useQuery(clusterQuery(name));
  const admin = isClusterAdmin(session);
  return (
    <>
      <PageHeader title={t`Cluster`} facts={t`Mode and placement of ${name}`} />
      {cluster.isPending && <Skeleton height={320} />}
      <QueryError title={t`The cluster's settings cannot be shown`} query={cluster} />
      {cluster.data !== undefined && (
        <Stack gap="md">
          <DiagnosticsPanel />
          {admin && <ConfigurationPanel cluster={cluster.data} edit={edit} />}
          {admin && <DeviceSettingsPanel edit={edit} />}
          <Setting
            title={t`Scheduler that decides`}
            choices={modes()}
            current={cluster.data.mode}
            change={(mode) => ({ mode })}
            etag={cluster.data.etag}
            admin={admin}
          />
          <Setting
            title={t`Scheduler that binds pods with devices`}
            choices={bindings()}
            current={cluster.data.device_binding}
            change={(device_binding) => ({ device_binding })}
            etag={cluster.data.etag}
            admin={admin}
          />
          <Setting
            title={t`Which pods get nodes from kueueweb`}
            choices={placements()}
            current={cluster.data.placement}
            change={(placement) => ({ placement })}
            etag={cluster.data.etag}
            admin={admin}
          />
          <Setting
            title={t`Kueue's objects in the cluster`}
            choices={serving()}
            current={cluster.data.serves_kueue_objects ? "follow" : "leave"}
            change={(choice) => ({ serves_kueue_objects: choice === "follow" })}
            etag={cluster.data.etag}
            admin={admin}
          />
          {cluster.data.serves_kueue_objects && <Problems />}
          {admin && <NeighboursPanel cluster={cluster.data} />}
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
  etag: string | null;
  admin: boolean;
}

function Setting<Value extends string>(props: SettingProps<Value>) {
  const { title, choices, current, change, etag, admin } = props;
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
        <Question
          choice={choices[asked]}
          title={title}
          change={change(asked)}
          etag={etag}
          onClose={() => ask(null)}
        />
      )}
    </Panel>
  );
}

interface QuestionProps {
  choice: Choice;
  title: string;
  change: ClusterSettings;
  etag: string | null;
  onClose: () => void;
}

function Question({ choice, title, change, etag, onClose }: QuestionProps) {
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
        settings.mutate(
          { change, etag },
          {
            onSuccess: () => {
              notifications.show({ color: "teal", title, message: choice.label });
              onClose();
            },
          },
        )
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

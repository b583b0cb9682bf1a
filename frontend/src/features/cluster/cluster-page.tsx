/** How the scheduler of the cluster on screen is doing, what an operator sets of it, and what does not agree with it. */
import { plural, t } from "@lingui/core/macro";
import { Alert, List, Radio, Skeleton, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { clusterQuery, useClusterSettings } from "@/api/cluster-settings";
import { overviewQuery } from "@/api/overview";
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
  /** The meaning of the mode. */
  meaning: string;
  /** A warning before it is chosen. */
  warning: string;
}

const modes = (): Record<NonNullable<ClusterSettings["mode"]>, Choice> => ({
  observe: {
    label: t`Observe`,
    meaning: t`Kueue decides. Everything is shown here, and nothing is written to the cluster.`,
    warning: t`From now on, the objects here follow the cluster's Kueue. Objects that the cluster does not have are deleted here.`,
  },
  shadow: {
    label: t`Shadow`,
    meaning: t`Kueue decides; kueueweb's scheduler decides the same workloads for comparison. Nothing is written to the cluster.`,
    warning: t`From now on, the objects here follow the cluster's Kueue. Objects that the cluster does not have are deleted here.`,
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
    meaning: t`kueueweb binds pods to nodes and devices. Of HAMi, only the device plugin is needed.`,
    warning: t`HAMi's scheduler still binds pods that HAMi's webhook has assigned to it: keep it running until they have started. Suspending and resuming a job recreates its pods for kueueweb.`,
  },
  pin: {
    label: t`Pin`,
    meaning: t`kueueweb chooses the node and the devices; HAMi's scheduler binds.`,
    warning: t`HAMi's webhook and scheduler must run. A pod that the webhook does not see stays gated, and the push worker's log names it. kueueweb still binds pods that were created before.`,
  },
});

const placements = (): Record<NonNullable<ClusterSettings["placement"]>, Choice> => ({
  devices: {
    label: t`Devices only`,
    meaning: t`kueueweb places pods of workloads that request devices. The cluster's own scheduler places the others, as under Kueue.`,
    warning: t`Workloads without devices are admitted as soon as quota is free, even if no node has room for them yet.`,
  },
  topology: {
    label: t`Devices and topologies`,
    meaning: t`Pods in flavors with a topology are placed on nodes with room for them, too.`,
    warning: t`Workloads in flavors without a topology are admitted as soon as quota is free, even if no node has room for them yet.`,
  },
  all: {
    label: t`All pods`,
    meaning: t`Every pod is placed on a node with room for it. A workload that fits no node waits, and its page says why.`,
    warning: t`Workloads wait if no known node has room for them. A flavor whose nodes are autoscaled needs the annotation kueueweb.io/quota-only.`,
  },
});

const serving = (): Record<"leave" | "follow", Choice> => ({
  leave: {
    label: t`Not synchronized`,
    meaning: t`Queues, flavors and workloads are created here, on the pages or over REST. Jobs in the cluster start as usual.`,
    warning: t`From now on, kubectl shows Kueue's objects as they were last written.`,
  },
  follow: {
    label: t`Synchronized`,
    meaning: t`While kueueweb decides, Kueue's objects in the cluster and the objects here are kept in sync, with their status: kubectl and kueuectl work as with Kueue.`,
    warning: t`Kueue's CRDs must be installed, and Kueue's controller must not run. Current differences are listed on this page.`,
  },
});

export function ClusterPage({ edit }: { edit: EditSetting }) {
  const name = useCluster();
  const { data: session } = useSuspenseQuery(sessionQuery());
  const cluster = useQuery(clusterQuery(name));
  const admin = isClusterAdmin(session);
  return (
    <>
      <PageHeader title={t`Cluster`} facts={t`Scheduler, configuration and mode of cluster ${name}`} />
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
            title={t`Pods that kueueweb places on nodes`}
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

/** Counts the workloads that continue, and names the scheduler that starts the waiting ones. */
function ModeEffects({ mode }: { mode: NonNullable<ClusterSettings["mode"]> }) {
  const totals = useQuery(overviewQuery(useCluster())).data?.totals;
  if (totals === undefined) return null;
  const { pending, admitted } = totals;
  return (
    <Alert variant="light" color="teal" title={t`Effects now`} role="status">
      <List size="sm" spacing={2}>
        <List.Item>
          {plural(admitted, {
            one: "No workload stops: # running workload continues",
            other: "No workload stops: # running workloads continue",
          })}
        </List.Item>
        <List.Item>
          {mode === "schedule"
            ? plural(pending, {
                one: "kueueweb decides when # pending workload starts",
                other: "kueueweb decides when # pending workloads start",
              })
            : plural(pending, {
                one: "Kueue decides when # pending workload starts; kueueweb starts none",
                other: "Kueue decides when # pending workloads start; kueueweb starts none",
              })}
        </List.Item>
      </List>
    </Alert>
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
      {change.mode !== undefined && <ModeEffects mode={change.mode} />}
      <Alert color="yellow" variant="light">
        {choice.warning}
      </Alert>
    </ConfirmDialog>
  );
}

/** One workload: its state, why it waits or where it runs, and its history. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Box, Grid, Group, Skeleton, Stack, Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { yamlQuery } from "@/api/manifests";
import type { WorkloadDetail } from "@/api/types";
import { workloadQuery } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { ErrorState } from "@/components/error-state";
import { Icon } from "@/components/icon";
import { TextLink } from "@/components/link";
import { YamlPanel } from "@/components/manifest/yaml-panel";
import { LocalQueueLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WorkloadActions } from "../actions/workload-actions";
import { WorkloadStateBadge } from "../list/workload-columns";
import { StateOfWorkload, type StateOfWorkloadProps } from "../waiting/why-it-waits";
import { AdmissionChecks, Conditions } from "./conditions";
import { Events } from "./events";
import { GoneWorkload } from "./gone-workload";
import { Lifecycle } from "./lifecycle";
import { PodSets } from "./pod-sets";
import { Variants } from "./variants";
import { WhereItRan } from "./where-it-ran";
import { WhereItRuns } from "./where-it-runs";

export interface WorkloadPageProps extends Pick<StateOfWorkloadProps, "candidates"> {
  namespace: string;
  name: string;
}

export function WorkloadPage({ namespace, name, candidates }: WorkloadPageProps) {
  const cluster = useCluster();
  const workload = useQuery(workloadQuery(cluster, { namespace, name }));
  const trail = (
    <TextLink to="/workloads" fz="sm" style={{ display: "inline-flex", alignItems: "center", gap: 6 }}>
      <Icon name="back" size={14} /> <Trans>Workloads</Trans>
    </TextLink>
  );
  if (workload.error instanceof ApiError && workload.error.status === 404) {
    return (
      <>
        <PageHeader title={name} trail={trail} />
        <GoneWorkload namespace={namespace} name={name} />
      </>
    );
  }
  if (workload.data === undefined) {
    return (
      <>
        <PageHeader title={name} trail={trail} />
        {workload.error === null ? (
          <Skeleton height={320} />
        ) : (
          <QueryError title={t`${namespace}/${name} cannot be shown`} query={workload} />
        )}
      </>
    );
  }
  return (
    <>
      <PageHeader
        title={name}
        trail={trail}
        facts={<Facts workload={workload.data} />}
        actions={<WorkloadActions workload={workload.data} />}
      />
      {workload.error !== null && (
        <Text c="var(--kw-over)" fz="sm" role="alert" mb="sm">
          <Trans>Not updated: {workload.error.message}</Trans>
        </Text>
      )}
      <StateOfWorkload workload={workload.data} candidates={candidates} />
      {workload.data.push_error !== "" && (
        <Box mb="md">
          <ErrorState
            title={t`The cluster refuses the decision`}
            message={t`${workload.data.push_error} The push is retried until the cluster accepts it.`}
          />
        </Box>
      )}
      <Stack gap="md">
        <Variants workload={workload.data} />
        <WhereItRuns workload={workload.data} />
        {workload.data.devices.length === 0 && workload.data.status !== "Pending" && (
          <WhereItRan namespace={namespace} name={name} />
        )}
        <Panel title={t`Lifecycle`}>
          <Lifecycle workload={workload.data} />
        </Panel>
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <Records workload={workload.data} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <Stack gap="md">
              <PodSets podSets={workload.data.pod_sets} />
              <AdmissionChecks checks={workload.data.admission_checks} />
            </Stack>
          </Grid.Col>
        </Grid>
      </Stack>
    </>
  );
}

/** The records of the cluster and the scheduler: one of three at a time. */
function Records({ workload }: { workload: WorkloadDetail }) {
  const cluster = useCluster();
  const { namespace, name } = workload;
  return (
    <Tabs defaultValue="events" keepMounted={false}>
      <Tabs.List mb="md">
        <Tabs.Tab value="events">{t`Events`}</Tabs.Tab>
        <Tabs.Tab value="conditions">{t`Conditions`}</Tabs.Tab>
        <Tabs.Tab value="yaml">YAML</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="events">
        <Events workload={workload} />
      </Tabs.Panel>
      <Tabs.Panel value="conditions">
        <Conditions conditions={workload.conditions} />
      </Tabs.Panel>
      <Tabs.Panel value="yaml">
        <YamlPanel query={yamlQuery(cluster, { kind: "Workload", namespace, name })} opened />
      </Tabs.Panel>
    </Tabs>
  );
}

function Facts({ workload }: { workload: WorkloadDetail }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      <WorkloadStateBadge workload={workload} />
      <span>
        <Trans>
          in namespace{" "}
          <TextLink
            to="/workloads"
            search={{ namespace: workload.namespace }}
            fz="inherit"
            underline="always"
          >
            {workload.namespace}
          </TextLink>
        </Trans>
      </span>
      {workload.cluster_queue !== "" && (
        <span>
          <Trans>
            queue{" "}
            <TextLink
              to="/queues/$name"
              params={{ name: workload.cluster_queue }}
              fz="inherit"
              underline="always"
            >
              {workload.cluster_queue}
            </TextLink>
          </Trans>{" "}
          {workload.local_queue !== "" && (
            <Trans>
              through LocalQueue{" "}
              <LocalQueueLink namespace={workload.namespace} name={workload.local_queue} inText />
            </Trans>
          )}
        </span>
      )}
      <span className="kw-number">
        <Trans>priority {workload.priority}</Trans>
        {workload.priority_class !== "" && ` (${workload.priority_class})`}
      </span>
      {workload.variant_of !== "" && (
        <span>
          <Trans>
            variant of{" "}
            <TextLink
              to="/workloads/$namespace/$name"
              params={{ namespace: workload.namespace, name: workload.variant_of }}
              fz="inherit"
              underline="always"
            >
              {workload.variant_of}
            </TextLink>
          </Trans>
        </span>
      )}
      {workload.owner !== null && (
        <span>
          <Trans>
            owned by {workload.owner.kind} {workload.owner.name}
          </Trans>
        </span>
      )}
      <span>
        <Trans>
          created <Ago time={workload.created_at} />
        </Trans>
      </span>
    </Group>
  );
}

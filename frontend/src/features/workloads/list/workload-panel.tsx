/** One workload beside the list: its state, what can be done, where it runs and what happened, without leaving the list. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Drawer, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { type WorkloadReference, workloadQuery } from "@/api/workloads";
import { Ago } from "@/components/ago";
import { TextLink } from "@/components/link";
import { ClusterQueueLink } from "@/components/object-links";
import { QueryError } from "@/components/query-error";
import { WorkloadActions } from "../actions/workload-actions";
import { Events } from "../page/events";
import { PodSets } from "../page/pod-sets";
import { WhereItRuns } from "../page/where-it-runs";
import { StateCard } from "../waiting/why-it-waits";
import { WorkloadStateBadge } from "./workload-columns";

export interface WorkloadPanelProps {
  reference: WorkloadReference;
  onClose: () => void;
}

/** Nothing covers the list: another row opens in the same panel. */
export function WorkloadPanel({ reference, onClose }: WorkloadPanelProps) {
  const { namespace, name } = reference;
  const workload = useQuery(workloadQuery(useCluster(), reference));
  const found = workload.data;
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="lg"
      title={<b>{name}</b>}
      withOverlay={false}
      lockScroll={false}
      trapFocus={false}
      closeOnClickOutside={false}
    >
      {found === undefined && workload.error === null && <Skeleton height={240} />}
      {found === undefined && <QueryError title={t`${namespace}/${name} cannot be shown`} query={workload} />}
      {found !== undefined && (
        <Stack gap="md">
          <Group gap="xs" fz="sm" c="var(--kw-muted)">
            <WorkloadStateBadge workload={found} />
            <Text inherit component="span">
              {namespace}
            </Text>
            {found.cluster_queue !== "" && <ClusterQueueLink name={found.cluster_queue} />}
            <Ago time={found.created_at} />
            <TextLink
              to="/workloads/$namespace/$name"
              params={{ namespace, name }}
              fz="sm"
              fw={550}
              ml="auto"
            >
              <Trans>Full page</Trans>
            </TextLink>
          </Group>
          <StateCard workload={found} />
          <Group gap="xs">
            <WorkloadActions workload={found} />
          </Group>
          <WhereItRuns workload={found} />
          <PodSets podSets={found.pod_sets} />
          <Events workload={found} />
        </Stack>
      )}
    </Drawer>
  );
}

/** The configuration of the cluster's scheduler, to read in full and to edit. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Code, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useCluster } from "@/api/cluster";
import type { clusterQuery } from "@/api/cluster-settings";
import { deviceSettingsQuery, type ObjectReference } from "@/api/manifests";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { authored, type Value } from "@/lib/manifest/object";
import { toYaml } from "@/lib/manifest/yaml";

type Cluster = Awaited<ReturnType<NonNullable<ReturnType<typeof clusterQuery>["queryFn"]>>>;

type Setting = ObjectReference & { kind: "Configuration" | "ConfigMap" };

/** The buttons by which a setting is changed, or made where it is not there. */
export type EditSetting = (reference: Setting, isThere: boolean) => ReactNode;

const CONFIGURATION = { kind: "Configuration", name: "default" } as const;
const NO_CONFIG_MAP = { kind: "ConfigMap", name: "" } as const;

export function ConfigurationPanel({ cluster, edit }: { cluster: Cluster; edit: EditSetting }) {
  const { apiVersion: _, kind: __, ...settings } = cluster.configuration;
  const isSet = Object.keys(cluster.configuration).length > 0;
  return (
    <Panel title={t`Configuration`} aside={<Group gap="xs">{edit(CONFIGURATION, isSet)}</Group>}>
      <Stack gap="sm">
        <Text fz="sm" c="var(--kw-muted)">
          {Object.keys(settings).length === 0 ? (
            <Trans>
              Kueue's defaults: no fair sharing, no waiting for pods, all resources are charged as requested.
            </Trans>
          ) : (
            <Trans>Kueue's Configuration. Omitted fields have Kueue's defaults.</Trans>
          )}
        </Text>
        {Object.keys(settings).length > 0 && <Code block>{toYaml(settings as Value)}</Code>}
      </Stack>
    </Panel>
  );
}

export function DeviceSettingsPanel({ edit }: { edit: EditSetting }) {
  const maps = useQuery(deviceSettingsQuery(useCluster()));
  return (
    <Panel title={t`Device settings`} aside={maps.data?.length === 0 && edit(NO_CONFIG_MAP, false)}>
      {maps.isPending && <Skeleton height={60} />}
      <QueryError title={t`This list cannot be shown`} query={maps} />
      {maps.data?.length === 0 && (
        <Text fz="sm" c="var(--kw-muted)">
          <Trans>
            HAMi's defaults: at most ten slices per device, no oversubscription, nodes are packed and devices
            are spread.
          </Trans>
        </Text>
      )}
      <Stack gap="md">
        {maps.data?.map((map) => {
          const { name, namespace } = map.metadata;
          const reference = { kind: "ConfigMap", name: String(name), namespace: String(namespace) } as const;
          return (
            <Stack key={`${namespace}/${name}`} gap="xs">
              <Group justify="space-between">
                <Text fz="sm" fw={550}>
                  {map.kind} {String(namespace)}/{String(name)}
                </Text>
                <Group gap="xs">{edit(reference, true)}</Group>
              </Group>
              <Code block>{toYaml(authored(map).data ?? {})}</Code>
            </Stack>
          );
        })}
      </Stack>
    </Panel>
  );
}

/** The workload as Kueue's YAML, on demand. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Code, CopyButton, Group, Skeleton, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { workloadManifestQuery } from "@/api/manifests";
import type { WorkloadReference } from "@/api/workloads";
import { ErrorState } from "@/components/error-state";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/panel";
import classes from "../workloads.module.css";

export function Manifest(reference: WorkloadReference) {
  const [opened, { toggle }] = useDisclosure(false);
  const manifest = useQuery({ ...workloadManifestQuery(useCluster(), reference), enabled: opened });
  return (
    <Panel>
      <Group justify="space-between">
        <UnstyledButton onClick={toggle} aria-expanded={opened}>
          <Group gap="xs">
            <Icon name={opened ? "down" : "right"} size={14} />
            <Text fw={620} fz={14}>
              <Trans>Manifest</Trans>
            </Text>
          </Group>
        </UnstyledButton>
        {manifest.data !== undefined && (
          <CopyButton value={manifest.data}>
            {({ copied, copy }) => (
              <ActionIcon
                variant="subtle"
                color={copied ? "teal" : "gray"}
                onClick={copy}
                aria-label={t`Copy the manifest`}
              >
                <Icon name={copied ? "check" : "copy"} size={16} />
              </ActionIcon>
            )}
          </CopyButton>
        )}
      </Group>
      {opened && manifest.isPending && <Skeleton height={200} mt="sm" />}
      {opened && manifest.error !== null && (
        <ErrorState title={t`The manifest cannot be shown`} message={manifest.error.message} />
      )}
      {opened && manifest.data !== undefined && (
        <Code block mt="sm" className={classes.manifest}>
          {manifest.data}
        </Code>
      )}
    </Panel>
  );
}

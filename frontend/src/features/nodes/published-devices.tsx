/** The devices that drivers publish on a node for claims (DRA), and which claim holds each. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { publishedDevicesQuery } from "@/api/cluster-settings";
import type { PublishedDevice } from "@/api/types";
import { Panel } from "@/components/panel";

export function PublishedDevices({ node }: { node: string }) {
  const { data } = useQuery(publishedDevicesQuery(useCluster(), node));
  // Most clusters have no such driver; a panel that says so on every node would be in the way.
  if (data === undefined || data.results.length === 0) return null;
  return (
    <Panel title={t`Devices for claims`} flush>
      <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>
              <Trans>Device</Trans>
            </Table.Th>
            <Table.Th>
              <Trans>Classes</Trans>
            </Table.Th>
            <Table.Th>
              <Trans>Attributes and capacity</Trans>
            </Table.Th>
            <Table.Th>
              <Trans>Claim</Trans>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {data.results.map((device) => (
            <Table.Tr key={`${device.driver}/${device.pool}/${device.name}`}>
              <Table.Td>
                {device.name}
                <Text fz="xs" c="var(--kw-muted)">
                  {poolOf(device)}
                </Text>
              </Table.Td>
              <Table.Td>{device.device_classes.join(", ")}</Table.Td>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{factsOf(device)}</Table.Td>
              <Table.Td>{holderOf(device)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}

function poolOf({ driver, pool }: PublishedDevice): string {
  return t`${driver}, pool ${pool}`;
}

/** The driver's facts about a device, in one line. */
export function factsOf({ attributes, capacity }: Pick<PublishedDevice, "attributes" | "capacity">): string {
  return Object.entries({ ...attributes, ...capacity })
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => `${name}: ${value}`)
    .join(", ");
}

/** The claim that holds it, or whether a claim could have it. */
export function holderOf({ claim, usable }: Pick<PublishedDevice, "claim" | "usable">): string {
  if (claim !== "") return claim;
  return usable ? t`Free` : t`Not usable: tainted, or its pool is incomplete`;
}

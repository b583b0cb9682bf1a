/** The nodes where a waiting workload might run, the emptiest first, with the workloads that hold their devices. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { useCluster, useLive } from "@/api/cluster";
import { nodesQuery } from "@/api/nodes";
import { TextLink } from "@/components/link";
import { NodeLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { formatCount } from "@/lib/quantity";
import classes from "./gpus.module.css";
import { NodeDevices } from "./node-devices";
import { candidateNodes, nodeFaults } from "./summary";

const MOST = 12;

export function CandidateNodes({ flavors }: { flavors: readonly string[] }) {
  const navigate = useNavigate();
  const nodes = useQuery(nodesQuery(useCluster()));
  const devices = useLive((live) => live.data?.devices);
  const found = useMemo(
    () => candidateNodes(nodes.data ?? [], devices ?? {}, flavors),
    [nodes.data, devices, flavors],
  );
  const faults = useMemo(() => nodeFaults(nodes.data ?? []), [nodes.data]);
  if (found.length === 0) return null;
  const more = found.length - MOST;
  return (
    <Panel
      title={t`Nodes where it might run`}
      aside={
        <TextLink to="/gpus" fz="sm">
          <Trans>All GPUs</Trans>
        </TextLink>
      }
      data-live
    >
      <div className={classes.candidates}>
        {found.slice(0, MOST).map(({ group, free }) => {
          const fault = faults.get(group.node);
          return (
            <div key={group.node}>
              <Text fz="xs" mb={4} truncate>
                <NodeLink name={group.node} />{" "}
                {fault === undefined ? (
                  <Text span fz="xs" c="var(--kw-muted)" className="kw-number">
                    <Trans>
                      {formatCount(free)} of {formatCount(group.entries.length)} free
                    </Trans>
                  </Text>
                ) : (
                  <span className={classes.fault}>{fault}</span>
                )}
              </Text>
              <NodeDevices
                group={group}
                fault={fault}
                compact
                bare
                highlight={undefined}
                onOpen={(device) => void navigate({ to: "/gpus", search: { node: group.node, device } })}
              />
            </div>
          );
        })}
      </div>
      {more > 0 && (
        <Text fz="xs" c="var(--kw-muted)" mt="xs">
          <Trans>and {formatCount(more)} nodes with less room</Trans>
        </Text>
      )}
    </Panel>
  );
}

/** All devices as small squares, by node: the darker, the more of their memory is held. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton } from "@mantine/core";
import { useMemo } from "react";
import { useLive } from "@/api/cluster";
import { TextLink } from "@/components/link";
import { NodeLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { formatCount, formatShare } from "@/lib/quantity";
import { gpuState } from "@/lib/url/gpu-filters";
import { devicesByNode } from "./judgement";
import classes from "./overview.module.css";

/** More nodes would push the rest of the page out of sight. */
const MOST_NODES = 48;

export function HeatMap() {
  const devices = useLive((live) => live.data?.devices);
  const nodes = useMemo(() => (devices === undefined ? null : devicesByNode(devices)), [devices]);
  if (nodes === null) return <Skeleton height={160} />;
  if (nodes.length === 0) return null;
  const more = nodes.length - MOST_NODES;
  return (
    <Panel
      title={t`GPUs, by memory held`}
      aside={
        <TextLink to="/gpus" fz="sm">
          {more > 0 ? <Trans>All {formatCount(nodes.length)} nodes</Trans> : <Trans>All GPUs</Trans>}
        </TextLink>
      }
      data-live
    >
      <div className={classes.heat}>
        {nodes.slice(0, MOST_NODES).map(({ node, entries }) => (
          <div key={node} className={classes.heatNode}>
            <NodeLink name={node} inRow />
            <span className={classes.heatCells}>
              {entries.map(({ uuid, device }) => {
                const share = device.used_memory_mib / Math.max(device.memory_mib, 1);
                const held = t`${formatShare(device.used_memory_mib, device.memory_mib)} held`;
                return (
                  <i
                    key={uuid}
                    role="img"
                    aria-label={t`GPU ${device.index} of ${node}: ${held}`}
                    title={t`GPU ${device.index} of ${node}: ${held}`}
                    data-state={gpuState(device)}
                    style={{ ["--heat" as string]: `${Math.round(Math.min(1, share) * 100)}%` }}
                  />
                );
              })}
            </span>
          </div>
        ))}
      </div>
    </Panel>
  );
}

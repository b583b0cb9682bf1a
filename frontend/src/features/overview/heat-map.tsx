/** All devices as small squares, by node: the darker, the more of their memory is held. A square opens its device. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { memo, useMemo } from "react";
import { useLive } from "@/api/cluster";
import { useRowCluster } from "@/components/clusters/row-cluster";
import { TextLink } from "@/components/link";
import { NodeLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { formatCount, formatShare } from "@/lib/quantity";
import { type GpuState, gpuState } from "@/lib/url/gpu-filters";
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
              {entries.map(({ uuid, device }) => (
                <Square
                  key={uuid}
                  uuid={uuid}
                  node={node}
                  index={device.index}
                  state={gpuState(device)}
                  usedMib={device.used_memory_mib}
                  memoryMib={device.memory_mib}
                />
              ))}
            </span>
          </div>
        ))}
      </div>
    </Panel>
  );
}

interface SquareProps {
  uuid: string;
  node: string;
  index: number;
  state: GpuState;
  usedMib: number;
  memoryMib: number;
}

/** The live stream draws the map anew each second: a square is drawn anew only if it has changed. */
const Square = memo(({ uuid, node, index, state, usedMib, memoryMib }: SquareProps) => {
  const { search } = useRowCluster();
  const held = t`${formatShare(usedMib, memoryMib)} held`;
  const words = t`GPU ${index} of ${node}: ${held}`;
  const share = usedMib / Math.max(memoryMib, 1);
  return (
    <Link
      to="/gpus"
      search={{ ...search, node, device: uuid }}
      tabIndex={-1}
      aria-label={words}
      title={words}
      data-state={state}
      style={{ ["--heat" as string]: `${Math.round(Math.min(1, share) * 100)}%` }}
    />
  );
});

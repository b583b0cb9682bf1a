/** All devices as small squares, by node: the darker, the more of their memory is held. A square opens its device. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, memo, useMemo, useState } from "react";
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
  const [chosen, setChosen] = useState("");
  if (nodes === null) return <Skeleton height={160} />;
  if (nodes.length === 0) return null;
  const more = nodes.length - MOST_NODES;
  const shown = nodes.slice(0, MOST_NODES);
  const rows = shown.map(({ entries }) => entries.map(({ uuid }) => uuid));
  // The map is one stop of Tab: the arrow keys go on from the square that had the focus last.
  const stop = rows.some((row) => row.includes(chosen)) ? chosen : rows[0]?.[0];
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
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for the fields of a form */}
      <div
        className={classes.heat}
        role="group"
        aria-label={t`GPUs by node. The arrow keys move between them.`}
        onFocus={({ target }) => setChosen(target.dataset.uuid ?? chosen)}
        onKeyDown={(event) => walk(event, rows)}
      >
        {shown.map(({ node, entries }) => (
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
                  isStop={uuid === stop}
                />
              ))}
            </span>
          </div>
        ))}
      </div>
    </Panel>
  );
}

/** Moves the focus to the next square in the direction of the key. */
function walk(event: KeyboardEvent<HTMLElement>, rows: string[][]) {
  const focused = (event.target as HTMLElement).dataset.uuid;
  if (focused === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const next = neighbour(rows, focused, event.key);
  if (next === undefined) return;
  event.preventDefault();
  event.currentTarget.querySelector<HTMLElement>(`[data-uuid="${CSS.escape(next)}"]`)?.focus();
}

/** The device beside another one; a node with fewer devices is entered at its last. Undefined for other keys and at the ends. */
export function neighbour(
  rows: readonly (readonly string[])[],
  uuid: string,
  key: string,
): string | undefined {
  const row = rows.findIndex((each) => each.includes(uuid));
  const place = rows[row]?.indexOf(uuid) ?? 0;
  const all = rows.flat();
  const at = all.indexOf(uuid);
  const inRow = (other: number) => rows[other]?.[Math.min(place, (rows[other]?.length ?? 1) - 1)];
  switch (key) {
    case "ArrowRight":
      return all[at + 1];
    case "ArrowLeft":
      return at > 0 ? all[at - 1] : undefined;
    case "ArrowDown":
      return inRow(row + 1);
    case "ArrowUp":
      return inRow(row - 1);
    case "Home":
      return all[0];
    case "End":
      return all.at(-1);
    default:
      return undefined;
  }
}

interface SquareProps {
  uuid: string;
  node: string;
  index: number;
  state: GpuState;
  usedMib: number;
  memoryMib: number;
  /** Whether Tab stops here. */
  isStop: boolean;
}

/** The live stream draws the map again each second: a square is drawn again only if it has changed. */
const Square = memo(({ uuid, node, index, state, usedMib, memoryMib, isStop }: SquareProps) => {
  const { search } = useRowCluster();
  const held = t`${formatShare(usedMib, memoryMib)} held`;
  const words = t`GPU ${index} of ${node}: ${held}`;
  const share = usedMib / Math.max(memoryMib, 1);
  return (
    <Link
      to="/gpus"
      search={{ ...search, node, device: uuid }}
      tabIndex={isStop ? 0 : -1}
      aria-label={words}
      title={words}
      data-state={state}
      data-uuid={uuid}
      style={{ ["--heat" as string]: `${Math.round(Math.min(1, share) * 100)}%` }}
    />
  );
});

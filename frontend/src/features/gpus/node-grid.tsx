/** The nodes with their devices; of thousands only those near the window are in the page. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { textScale } from "@/lib/text-scale";
import type { CordonState } from "@/lib/words/node-state";
import classes from "./gpus.module.css";
import { NodeDevices, type NodeDevicesProps } from "./node-devices";
import type { NodeGroup } from "./summary";

export interface NodeGridProps extends Pick<NodeDevicesProps, "compact" | "highlight" | "onOpen"> {
  groups: NodeGroup[];
  /** The conditions that keep pods off nodes, by the node's name. */
  faults: ReadonlyMap<string, string>;
  /** The cordons of admins, by the node's name. */
  cordons: ReadonlyMap<string, CordonState>;
}

/** A node of eight devices, in px; on a wide screen several stand side by side. */
const NODE_WIDTH = { compact: 228, detailed: 1_110 };
/** The width that the words in eight devices need, per size of the text. */
const WORDS_WIDTH = 1_075;
const GAP = 10;
const ROW_HEIGHT = { compact: 86, detailed: 166 };

export function NodeGrid({ groups, faults, cordons, compact, highlight, onOpen }: NodeGridProps) {
  const frame = useRef<HTMLDivElement>(null);
  const { top, width } = usePlace(frame);
  const columns = columnsIn(width, compact ? NODE_WIDTH.compact : detailedWidth());
  const virtual = useWindowVirtualizer({
    count: Math.ceil(groups.length / columns),
    estimateSize: () => (compact ? ROW_HEIGHT.compact : ROW_HEIGHT.detailed),
    overscan: 8,
    gap: GAP,
    scrollMargin: top,
    getItemKey: (row) => `${columns} ${groups[row * columns]?.node}`,
  });
  return (
    <div ref={frame} style={{ height: virtual.getTotalSize(), position: "relative" }} data-live>
      {virtual.getVirtualItems().map((row) => (
        <div
          key={row.key}
          ref={virtual.measureElement}
          data-index={row.index}
          className={classes.nodeRow}
          style={{
            gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
            transform: `translateY(${row.start - virtual.options.scrollMargin}px)`,
          }}
        >
          {groups.slice(row.index * columns, (row.index + 1) * columns).map((group) => (
            <NodeDevices
              key={group.node}
              group={group}
              fault={faults.get(group.node)}
              cordon={cordons.get(group.node)}
              compact={compact}
              highlight={highlight}
              onOpen={onOpen}
            />
          ))}
        </div>
      ))}
    </div>
  );
}

function detailedWidth(): number {
  return Math.max(NODE_WIDTH.detailed, WORDS_WIDTH * textScale());
}

function columnsIn(width: number, column: number): number {
  return Math.max(1, Math.floor((width + GAP) / (column + GAP)));
}

/** The top of an element on the page and its width, in px. */
function usePlace(frame: RefObject<HTMLElement | null>): { top: number; width: number } {
  const [place, setPlace] = useState({ top: 0, width: 0 });
  const measure = useCallback(() => {
    if (frame.current === null) return;
    const { top, width } = frame.current.getBoundingClientRect();
    const found = { top: Math.round(top + window.scrollY), width: Math.round(width) };
    setPlace((before) => (before.top === found.top && before.width === found.width ? before : found));
  }, [frame]);
  // After each render: what stands above (tenants, a banner) changes where the element begins.
  useLayoutEffect(measure);
  useEffect(() => {
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, [measure]);
  return place;
}

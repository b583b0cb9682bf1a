/** A bar of segments on a track, with marks: how much of a total is taken, and by what. */
import classes from "./meter.module.css";

export interface MeterSegment {
  value: number;
  /** A CSS colour. */
  color: string;
  label: string;
  /** Stripes instead of a plain fill, for what is promised and not taken. */
  striped?: boolean;
}

export interface MeterProps {
  segments: MeterSegment[];
  /** The whole track, in the unit of the segments. */
  total: number;
  /** Read out in place of the drawing. */
  label: string;
  /** The place of a line, in the unit of the segments. */
  marks?: { at: number; label: string }[];
  height?: number;
}

export function Meter({ segments, total, label, marks = [], height = 8 }: MeterProps) {
  const sum = segments.reduce((whole, segment) => whole + segment.value, 0);
  // What exceeds its total (found in the cluster, or after a cut) still shows as it is.
  const scale = Math.max(total, sum);
  const percent = (value: number) => `${scale > 0 ? (value / scale) * 100 : 0}%`;
  return (
    <div className={classes.meter} role="img" aria-label={label} style={{ height }}>
      <div className={classes.track}>
        {segments
          .filter((segment) => segment.value > 0)
          .map((segment, place) => (
            <div
              // Segments have no identity but their place.
              // biome-ignore lint/suspicious/noArrayIndexKey: see above
              key={place}
              title={segment.label}
              className={segment.striped ? classes.striped : classes.segment}
              style={{ width: percent(segment.value), ["--segment" as string]: segment.color }}
            />
          ))}
      </div>
      {marks.map((mark) => (
        <div
          key={mark.label}
          className={classes.mark}
          title={mark.label}
          style={{ left: `min(${percent(mark.at)}, calc(100% - 2px))` }}
        />
      ))}
    </div>
  );
}

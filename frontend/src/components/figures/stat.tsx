/** One number that matters, with its name, a note and, where it is a share, a bar; a second, thin one beside it. */
import { Paper, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Meter, type MeterSegment } from "./meter";
import classes from "./stat.module.css";

export interface StatProps {
  label: string;
  value: ReactNode;
  note?: ReactNode;
  meter?: StatMeter & { second?: StatMeter };
}

interface StatMeter {
  segments: MeterSegment[];
  total: number;
  label: string;
}

export function Stat({ label, value, note, meter }: StatProps) {
  return (
    <Paper className={classes.stat} data-live>
      <Text className={classes.label}>{label}</Text>
      <div className={`${classes.value} kw-number`}>{value}</div>
      {meter !== undefined && <Meter segments={meter.segments} total={meter.total} label={meter.label} />}
      {meter?.second !== undefined && <Meter {...meter.second} height={4} />}
      {note !== undefined && <div className={`${classes.note} kw-number`}>{note}</div>}
    </Paper>
  );
}

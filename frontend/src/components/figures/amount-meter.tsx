/** How much of something is taken: the numbers, and below them a thin bar. */
import { formatAmountOf, formatAmountShort } from "@/lib/quantity";
import classes from "./amount-meter.module.css";
import { Meter } from "./meter";

export interface AmountMeterProps {
  /** The resource, which gives the unit. */
  resource: string;
  used: number;
  /** Null where it is not known. */
  total: number | null;
}

export function AmountMeter({ resource, used, total }: AmountMeterProps) {
  if (total === null) return <span className="kw-number">{formatAmountShort(resource, used)}</span>;
  const text = formatAmountOf(resource, used, total);
  // Full is what it is for; only more than there is means that something is wrong.
  const color = used > total ? "var(--kw-over)" : "var(--kw-used)";
  return (
    <span className={classes.amount} title={text}>
      <span className="kw-number">{text}</span>
      <Meter height={4} total={total} label={text} segments={[{ value: used, color, label: text }]} />
    </span>
  );
}

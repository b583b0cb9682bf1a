/** A text that loses its middle where there is no room: names of one series differ at their end. */
import classes from "./middle-ellipsis.module.css";

const TAIL = 8;

export function MiddleEllipsis({ text }: { text: string }) {
  const cut = Math.max(0, text.length - TAIL);
  return (
    <span className={classes.whole} title={text}>
      {cut > 0 && <span className={classes.start}>{text.slice(0, cut)}</span>}
      <span className={classes.end}>{text.slice(cut)}</span>
    </span>
  );
}

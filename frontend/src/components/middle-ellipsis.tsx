/** A text that loses its middle where there is no room: names of one series differ at their end. */
import classes from "./middle-ellipsis.module.css";

const TAIL = 8;
/** A shorter text would be cut where nearly all of it fits: it loses its end, or nothing. */
const SHORTEST_CUT = 14;

export function MiddleEllipsis({ text }: { text: string }) {
  const cut = text.length < SHORTEST_CUT ? text.length : text.length - TAIL;
  return (
    <span className={classes.whole} title={text}>
      {/* One piece for screen readers and searches; what is seen is drawn by the style sheet. */}
      <span className={classes.name}>{text}</span>
      {cut > 0 && <span aria-hidden="true" className={classes.start} data-text={text.slice(0, cut)} />}
      {cut < text.length && <span aria-hidden="true" className={classes.end} data-text={text.slice(cut)} />}
    </span>
  );
}

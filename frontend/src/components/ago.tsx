/** A time as "3m ago", ticking; the full time stands in the tooltip. */
import { useNow } from "@/lib/clock";
import { formatAgo, formatTimestamp } from "@/lib/time";

export function Ago({ time }: { time: string | null }) {
  const now = useNow();
  if (time === null) return <span>–</span>;
  return (
    <time className="kw-number" dateTime={time} title={formatTimestamp(time)}>
      {formatAgo(time, now)}
    </time>
  );
}

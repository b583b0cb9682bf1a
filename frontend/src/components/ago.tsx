/** A time as "3m ago", or "3m" in columns, ticking; the full time stands in the tooltip. */
import { useNow } from "@/lib/clock";
import { formatAgo, formatShortAge, formatTimestamp } from "@/lib/time";

export function Ago({ time, short = false }: { time: string | null; short?: boolean }) {
  const now = useNow();
  if (time === null) return <span>–</span>;
  return (
    <time className="kw-number" dateTime={time} title={formatTimestamp(time)}>
      {short ? formatShortAge((now - Date.parse(time)) / 1000) : formatAgo(time, now)}
    </time>
  );
}

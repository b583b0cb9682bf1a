/** How far back the charts of a page look. */
import { t } from "@lingui/core/macro";
import { SegmentedControl } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { formatDuration } from "@/lib/time";
import { DEFAULT_RANGE, isRange, RANGES } from "@/lib/url/range";
import classes from "./history.module.css";
import { useRange } from "./use-history";

export function RangePicker() {
  const range = useRange();
  const navigate = useNavigate();
  return (
    <SegmentedControl
      className={classes.picker}
      size="xs"
      aria-label={t`Time range of the charts`}
      data={Object.entries(RANGES).map(([value, seconds]) => ({ value, label: formatDuration(seconds) }))}
      value={range}
      onChange={(value) => {
        if (!isRange(value)) return;
        const chosen = value === DEFAULT_RANGE ? undefined : value;
        void navigate({
          to: ".",
          search: (before: Record<string, unknown>) => ({ ...before, range: chosen }),
          resetScroll: false,
        } as never);
      }}
    />
  );
}

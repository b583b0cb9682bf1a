/** How far back the charts of a page look. */
import { SegmentedControl } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { DEFAULT_RANGE, isRange, RANGES } from "@/lib/url/range";
import classes from "./history.module.css";
import { useRange } from "./use-history";

const CHOICES = Object.entries(RANGES).map(([value, { label }]) => ({ value, label }));

export function RangePicker() {
  const range = useRange();
  const navigate = useNavigate();
  return (
    <SegmentedControl
      className={classes.picker}
      size="xs"
      aria-label="Time range of the charts"
      data={CHOICES}
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

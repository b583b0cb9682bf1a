/** The charts of a page below one heading, with the range that they share. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group } from "@mantine/core";
import type { ReactNode } from "react";
import { ErrorState } from "@/components/error-state";
import { Panel } from "@/components/panel";
import { TimePicker } from "@/components/time/time-picker";
import { CHART_RANGE, CHART_RANGES } from "@/lib/url/chart-range";
import classes from "./history.module.css";
import { useChartRange, useChooseRange } from "./use-history";
import { MARK_COLORS, type Marks } from "./use-marks";

export interface HistorySectionProps {
  marks: Pick<Marks, "marks" | "cut">;
  error: Error | null;
  onRetry: () => void;
  /** Whether only one row of the charts is shown, and all of them after a click. */
  fold?: { folded: boolean; onFold: (folded: boolean) => void };
  children: ReactNode;
}

export function HistorySection({ marks, error, onRetry, fold, children }: HistorySectionProps) {
  return (
    <section aria-label={t`History`}>
      <div className={classes.head}>
        <Group gap="md">
          <h2 className={classes.title} style={{ margin: 0 }}>
            <Trans>History</Trans>
          </h2>
          {marks.marks.length > 0 && <MarkLegend cut={marks.cut} />}
        </Group>
        <Group gap="xs">
          {fold !== undefined && (
            <Button
              size="xs"
              variant="subtle"
              aria-expanded={!fold.folded}
              onClick={() => fold.onFold(!fold.folded)}
            >
              {fold.folded ? t`All charts` : t`Fewer charts`}
            </Button>
          )}
          <TimePicker
            range={useChartRange()}
            ranges={CHART_RANGES}
            fallback={CHART_RANGE}
            onChange={useChooseRange()}
          />
        </Group>
      </div>
      {error === null ? (
        <div className={classes.grid}>{children}</div>
      ) : (
        <Panel>
          <ErrorState title={t`The history cannot be shown`} message={error.message} onRetry={onRetry} />
        </Panel>
      )}
    </section>
  );
}

function MarkLegend({ cut }: { cut: boolean }) {
  const kinds = [
    [MARK_COLORS.preempted, t`preempted`],
    [MARK_COLORS.evicted, t`evicted`],
    [MARK_COLORS.edited, t`edited`],
  ] as const;
  return (
    <span className={classes.marks}>
      {kinds.map(([color, label]) => (
        <span key={color}>
          <i style={{ borderTopColor: color }} />
          {label}
        </span>
      ))}
      {cut && <Trans>only the newest</Trans>}
    </span>
  );
}

/** The charts of a page below one heading, with the range that they share. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group } from "@mantine/core";
import type { ReactNode } from "react";
import { ErrorState } from "@/components/error-state";
import { Panel } from "@/components/panel";
import classes from "./history.module.css";
import { RangePicker } from "./range-picker";

export interface HistorySectionProps {
  error: Error | null;
  onRetry: () => void;
  /** Where only one row of the charts is shown, or all of them after a click. */
  fold?: { folded: boolean; onFold: (folded: boolean) => void };
  children: ReactNode;
}

export function HistorySection({ error, onRetry, fold, children }: HistorySectionProps) {
  return (
    <section aria-label={t`History`}>
      <div className={classes.head}>
        <h2 className={classes.title} style={{ margin: 0 }}>
          <Trans>History</Trans>
        </h2>
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
          <RangePicker />
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

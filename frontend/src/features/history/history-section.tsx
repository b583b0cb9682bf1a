/** The charts of a page below one heading, with the range that they share. */
import type { ReactNode } from "react";
import { ErrorState } from "@/components/error-state";
import { Panel } from "@/components/panel";
import classes from "./history.module.css";
import { RangePicker } from "./range-picker";

export interface HistorySectionProps {
  error: Error | null;
  onRetry: () => void;
  children: ReactNode;
}

export function HistorySection({ error, onRetry, children }: HistorySectionProps) {
  return (
    <section aria-label="History">
      <div className={classes.head}>
        <h2 className={classes.title} style={{ margin: 0 }}>
          History
        </h2>
        <RangePicker />
      </div>
      {error === null ? (
        <div className={classes.grid}>{children}</div>
      ) : (
        <Panel>
          <ErrorState title="The history cannot be shown" message={error.message} onRetry={onRetry} />
        </Panel>
      )}
    </section>
  );
}

/** A card with a title: the frame of everything on a page. */
import { Group, Paper, type PaperProps, Title } from "@mantine/core";
import type { ReactNode, Ref } from "react";
import classes from "./panel.module.css";

export interface PanelProps extends PaperProps {
  title?: string;
  /** Beside the title, at the right. */
  aside?: ReactNode;
  /** Without inner padding, for tables that reach the edge. */
  flush?: boolean;
  className?: string;
  ref?: Ref<HTMLDivElement>;
  children: ReactNode;
}

export function Panel({ title, aside, flush = false, className, ref, children, ...paper }: PanelProps) {
  return (
    <Paper ref={ref} component="section" className={`${classes.panel} ${className ?? ""}`} {...paper}>
      {title !== undefined && (
        <Group className={classes.head} justify="space-between" gap="xs">
          <Title order={2} className={classes.title}>
            {title}
          </Title>
          {aside}
        </Group>
      )}
      <div className={flush ? undefined : classes.body}>{children}</div>
    </Paper>
  );
}

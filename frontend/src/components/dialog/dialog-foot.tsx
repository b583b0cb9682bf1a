/** The buttons of a dialog, and the answer to them above, in sight however long the dialog is. */
import { Group } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./dialog-foot.module.css";

export interface DialogFootProps {
  /** The last answer; a long one scrolls. */
  answer?: ReactNode;
  children: ReactNode;
}

export function DialogFoot({ answer = false, children }: DialogFootProps) {
  return (
    <div className={classes.foot}>
      {answer !== false && <div className={classes.answer}>{answer}</div>}
      <Group justify="flex-end">{children}</Group>
    </div>
  );
}

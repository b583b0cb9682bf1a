/** The buttons of a dialog, in sight however long it is. */
import { Group } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./dialog-foot.module.css";

export function DialogFoot({ children }: { children: ReactNode }) {
  return (
    <Group justify="flex-end" className={classes.foot}>
      {children}
    </Group>
  );
}

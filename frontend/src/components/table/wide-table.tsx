/** Around a table that may be wider than the screen. It scrolls sideways, and a shadow says where there is more. */
import type { ComponentProps } from "react";
import classes from "./wide-table.module.css";

interface WideTableProps extends ComponentProps<"div"> {
  /** Lines are not broken. */
  whole?: boolean;
  /** On a phone each row is a block. Its cells say what they are by `data-label`; one with `data-wide` has a line, one with `data-none` is left out. */
  blocks?: boolean;
}

export function WideTable({ whole = false, blocks = false, className, ...rest }: WideTableProps) {
  const names = [classes.scroll, whole && classes.whole, blocks && classes.blocks, className];
  return <div {...rest} className={names.filter(Boolean).join(" ")} />;
}

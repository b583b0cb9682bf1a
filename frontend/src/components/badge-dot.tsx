/** A label with a dot in a colour: for statuses, so that colour is never the only sign. */
import classes from "./badge-dot.module.css";

export interface BadgeDotProps {
  label: string;
  /** A colour name of the theme. */
  color: string;
  hint?: string;
}

export function BadgeDot({ label, color, hint = "" }: BadgeDotProps) {
  const shade = (place: number) => `var(--mantine-color-${color}-${place})`;
  return (
    <span
      className={classes.badge}
      title={hint || undefined}
      style={{
        ["--dot" as string]: shade(6),
        ["--on-light" as string]: shade(9),
        ["--on-dark" as string]: shade(3),
      }}
    >
      {label}
    </span>
  );
}

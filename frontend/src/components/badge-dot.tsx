/** A label with a dot in a colour: for statuses, so that colour is never the only sign. */
import { Badge, Tooltip } from "@mantine/core";

export interface BadgeDotProps {
  label: string;
  /** A colour name of the theme. */
  color: string;
  hint?: string;
}

export function BadgeDot({ label, color, hint = "" }: BadgeDotProps) {
  return (
    <Tooltip label={hint} disabled={hint === ""} openDelay={300} withArrow>
      <Badge
        variant="light"
        color={color}
        radius="sm"
        tt="none"
        fw={600}
        leftSection={
          <span
            style={{
              display: "block",
              width: 7,
              height: 7,
              borderRadius: 4,
              background: `var(--mantine-color-${color}-filled)`,
            }}
          />
        }
      >
        {label}
      </Badge>
    </Tooltip>
  );
}

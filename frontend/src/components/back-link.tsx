/** The way back to the list that a page belongs to. */
import type { ComponentProps, ReactNode } from "react";
import { Icon } from "./icon";
import { TextLink } from "./link";

export function BackLink({ children, ...link }: ComponentProps<typeof TextLink>) {
  return (
    <TextLink {...link} fz="sm" style={{ display: "inline-flex", alignItems: "center", gap: 6 }}>
      <Icon name="back" size={14} /> {children as ReactNode}
    </TextLink>
  );
}

/** Links that look like the kit's and go where the router goes. */
import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { ComponentPropsWithRef } from "react";
import classes from "./link.module.css";

type AnchorLinkProps = Omit<AnchorProps, "children"> & ComponentPropsWithRef<"a">;

function AnchorLink(props: AnchorLinkProps) {
  return <Anchor {...props} />;
}

export const TextLink = createLink(AnchorLink);

/** Without what the kit's link can be told: rows of long lists are drawn in time. Its look is `nameLook`. */
export const NameLink = createLink("a");

/** The look of the kit's link; underlined where colour alone would not tell it from the words around it. */
export function nameLook(underlined: boolean): string {
  return `mantine-focus-auto ${classes.name} ${underlined ? classes.underlined : ""}`;
}

type ButtonLinkProps = Omit<ButtonProps, "children"> & ComponentPropsWithRef<"a">;

function AnchorButton(props: ButtonLinkProps) {
  return <Button component="a" {...props} />;
}

export const ButtonLink = createLink(AnchorButton);

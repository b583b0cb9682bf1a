/** Links that look like the kit's and go where the router goes. */
import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { ComponentPropsWithRef } from "react";

type AnchorLinkProps = Omit<AnchorProps, "children"> & ComponentPropsWithRef<"a">;

function AnchorLink(props: AnchorLinkProps) {
  return <Anchor {...props} />;
}

export const TextLink = createLink(AnchorLink);

type ButtonLinkProps = Omit<ButtonProps, "children"> & ComponentPropsWithRef<"a">;

function AnchorButton(props: ButtonLinkProps) {
  return <Button component="a" {...props} />;
}

export const ButtonLink = createLink(AnchorButton);

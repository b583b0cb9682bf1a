import { Notifications } from "@mantine/notifications";
import { Outlet } from "@tanstack/react-router";

/**
 * Notifications stand inside the router: they may link to pages. They stand at the left, because the buttons of dialogs
 * stand at the lower right, and a message must not cover the one that is pressed next.
 */
export function RootRoute() {
  return (
    <>
      <Notifications position="bottom-left" />
      <Outlet />
    </>
  );
}

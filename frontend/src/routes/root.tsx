import { Notifications } from "@mantine/notifications";
import { Outlet } from "@tanstack/react-router";

/** Notifications stand inside the router: they may link to pages. */
export function RootRoute() {
  return (
    <>
      <Notifications position="bottom-right" />
      <Outlet />
    </>
  );
}

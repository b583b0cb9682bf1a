import { NotificationsPage } from "@/features/notifications/notifications-page";

export function NotificationsRoute() {
  return <NotificationsPage />;
}

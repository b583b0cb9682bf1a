import { expect, test } from "vitest";
import type { Notification } from "@/api/types";
import { news } from "./notification-toasts";

const row = (id: number, read = false): Notification => ({
  id,
  cluster: "east",
  event: "QuotaUsed",
  title: `title ${id}`,
  message: "",
  path: "/queues/main",
  at: "2026-01-05T09:00:00Z",
  read_at: read ? "2026-01-05T09:01:00Z" : null,
  ended_at: null,
  deliveries: [],
});

test("only unread notifications that arrived since are shown, the oldest first", () => {
  const rows = [row(9), row(8, true), row(7), row(6), row(5)];
  expect(news(rows, 6).map(({ id }) => id)).toEqual([7, 9]);
  expect(news(rows, 0).map(({ id }) => id)).toEqual([6, 7, 9]);
});

test("nothing is shown of what was there when the page was opened", () => {
  expect(news([row(9)], undefined)).toEqual([]);
});

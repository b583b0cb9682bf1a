import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import type { LiveClusterQueue, LiveQuota } from "@/api/types";
import { renderPart } from "@/test-render";
import { QuotaUse } from "./quota-use";

const queues = vi.hoisted(() => ({ now: {} as Record<string, unknown> }));
vi.mock("@/api/cluster", () => ({
  useLive: (select: (live: unknown) => unknown) => select({ data: { cluster_queues: queues.now } }),
}));

it("shows the fullest resources of all queues where there are too many, cpu too", async () => {
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"].map((name) => `example.com/${name}`);
  const quota = (resource: string, used: number) =>
    ({ resource, nominal: 100, used, borrowed: 0 }) as LiveQuota;
  const usage = [...names.map((name, place) => quota(name, 10 * place)), quota("cpu", 97)];
  queues.now = { main: { usage } as LiveClusterQueue };
  await renderPart(<QuotaUse />);
  const bars = screen.getAllByRole("img").map((bar) => bar.getAttribute("aria-label")?.split(":")[0]);
  expect(bars[0]).toBe("cpu");
  expect(bars).toHaveLength(5);
  expect(bars).not.toContain("example.com/a");
});

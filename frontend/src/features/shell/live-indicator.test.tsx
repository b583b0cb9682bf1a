import { act, screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { LiveSocket } from "@/api/live/live";
import { EMPTY_LIVE_DATA } from "@/api/live/live-data";
import { renderPart } from "@/test-render";
import { LiveIndicator, StaleBanner } from "./live-indicator";

let socket: (LiveSocket & { url: string }) | null = null;

class FakeSocket implements LiveSocket {
  onopen = null;
  onmessage = null;
  onclose = null;
  constructor(readonly url: string) {
    socket = this;
  }
  send(): void {}
  close(): void {}
}

beforeEach(() => {
  socket = null;
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("requestAnimationFrame", (callback: () => void) => queueMicrotask(callback));
});

async function receive(type: string): Promise<void> {
  const frame = {
    type,
    cluster: "west",
    epoch: 1,
    sequence: 1,
    time: new Date().toISOString(),
    data: EMPTY_LIVE_DATA,
  };
  await act(async () => socket?.onmessage?.({ data: JSON.stringify(frame) }));
}

it("says live while numbers come, and since when they are stale once the socket is gone", async () => {
  await renderPart(
    <ClusterProvider cluster="west">
      <LiveIndicator />
      <StaleBanner />
    </ClusterProvider>,
  );
  expect(socket?.url).toContain("/ws/live/?cluster=west");
  expect(screen.getByRole("status").textContent).toBe("Connecting");

  await receive("snapshot");
  expect(screen.getByRole("status").textContent).toBe("Live");
  expect(screen.queryByRole("alert")).toBeNull();

  await act(async () => socket?.onclose?.({ code: 1006 }));
  expect(screen.getByRole("status").textContent).toBe("Stale");
  expect(screen.getByRole("alert").textContent).toMatch(/Stale since \d\d:\d\d:\d\d/);
});

it("does not offer to reconnect where the server refused", async () => {
  await renderPart(
    <ClusterProvider cluster="west">
      <StaleBanner />
    </ClusterProvider>,
  );
  await act(async () => socket?.onclose?.({ code: 4403 }));
  expect(screen.getByRole("alert").textContent).toContain("you cannot see it");
  expect(screen.queryByRole("button")).toBeNull();
});

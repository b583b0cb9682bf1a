import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { LiveDevice } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { DeviceFacts, DeviceHint, useRest } from "./device-facts";

const device: LiveDevice = {
  node: "gpu-1",
  index: 3,
  type: "NVIDIA-Tesla V100",
  vendor: "NVIDIA",
  health: true,
  cordoned: false,
  node_unschedulable: false,
  draining: false,
  slots: 10,
  used_slots: 2,
  memory_mib: 32768,
  used_memory_mib: 16384,
  cores_percent: 100,
  used_cores_percent: 60,
  units: { device: "device", parts: "slots", cores_unit: "%", cores: 100, used_cores: 60 },
  slices: [],
};
const usage = {
  cluster: "default",
  uuid: "GPU-3",
  node: "gpu-1",
  at: "2026-01-01T00:00:00Z",
  memory_used_mib: 8192,
  utilization_percent: 41.6,
  temperature_celsius: 0,
  power_watts: null,
};

class SilentSocket {
  close(): void {}
}

function answers(results: unknown[]) {
  vi.stubGlobal("WebSocket", SilentSocket);
  return serve([
    [/device-usage/, { body: { results, next: null } }],
    [/devices\/GPU-3/, { body: { mode: "hami-core", numa: 1 } }],
  ]);
}

const value = async (name: string) => (await screen.findByText(name)).nextElementSibling?.textContent;

it("shows what is measured beside what is held, with units, and says where no monitor measures", async () => {
  answers([usage]);
  await renderPart(
    <ClusterProvider cluster="default">
      <DeviceFacts uuid="GPU-3" device={device} />
    </ClusterProvider>,
  );
  await waitFor(async () => expect(await value("Temperature")).toBe("0 °C"));
  expect(await value("Power")).toBe("no telemetry");
  expect(await value("Memory")).toBe("8 GiB in use, 16 GiB of 32 GiB held");
  expect(await value("Cores")).toBe("42 % busy, 60 % held");
  await waitFor(async () => expect(await value("Mode")).toBe("hami-core"));
  expect(await value("NUMA node")).toBe("1");
});

function Card() {
  const { element, rests, handlers } = useRest();
  return (
    <button type="button" ref={element} {...handlers}>
      card
      {rests && <DeviceHint uuid="GPU-3" device={device} target={element} />}
    </button>
  );
}

it("asks only while the reader looks at a card", async () => {
  const calls = answers([]);
  await renderPart(
    <ClusterProvider cluster="default">
      <Card />
    </ClusterProvider>,
  );
  expect(calls).toEqual([]);
  await userEvent.hover(screen.getByText("card"));
  expect(await screen.findByText("Device 3 of gpu-1")).toBeTruthy();
  expect(await screen.findAllByText("no telemetry")).toHaveLength(4);
  await userEvent.unhover(screen.getByText("card"));
  await waitFor(() => expect(screen.queryByText("Device 3 of gpu-1")).toBeNull());
});

import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { NodeDetail } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { NodeAmounts } from "./node-amounts";

const totals = {
  devices: 2,
  used_memory_mib: 100,
  memory_mib: 1000,
  used_cores_percent: 10,
  cores_percent: 200,
};

it("says nothing of memory and cores where only temperature and power are measured", async () => {
  const row = {
    cluster: "default",
    node: "n1",
    memory_used_mib: null,
    utilization_percent: null,
    temperature_celsius: 61,
    power_watts: 200,
  };
  serve([[/device-usage/, { body: { results: [row, { ...row, temperature_celsius: 64 }] } }]]);
  const node = { name: "n1", allocatable: {}, requested: {}, device_totals: totals } as unknown as NodeDetail;
  await renderPart(
    <ClusterProvider cluster="default">
      <NodeAmounts node={node} />
    </ClusterProvider>,
  );
  expect(await screen.findByText("64 °C")).toBeTruthy();
  expect(screen.getByText("400 W")).toBeTruthy();
  const memory = screen.getByText("memory of 2 GPUs").closest("tr");
  expect(memory?.children[4]?.textContent).toBe("–");
  expect(screen.getByText("cores of 2 GPUs").closest("tr")?.children[4]?.textContent).toBe("–");
});

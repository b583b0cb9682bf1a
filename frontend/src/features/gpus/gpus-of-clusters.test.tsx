import { screen, within } from "@testing-library/react";
import { Suspense } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { GpusOfClusters } from "./gpus-of-clusters";

const UNITS = { device: "device", parts: "slots", cores_unit: "%", cores: 100, used_cores: 30 };
const device = (cluster: string, slices: unknown[]) => ({
  cluster,
  uuid: "GPU-1",
  node: "node-0",
  index: 1,
  vendor: "NVIDIA",
  type: "A100",
  healthy: true,
  cordoned: false,
  draining: false,
  slots: 10,
  used_slots: slices.length,
  memory_mib: 40_000,
  used_memory_mib: slices.length * 10_000,
  cores_percent: 100,
  used_cores_percent: 30,
  units: UNITS,
  slices,
});
const SLICE = { namespace: "team-a", memory_mib: 10_000, cores_percent: 30 };
const DRIFT = {
  cluster: "west",
  kind: "leftover",
  node: "node-9",
  device: "",
  message: "lives on",
  holders: [],
};

beforeEach(() => {
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
});

it("lists the devices of all clusters, what differs there, and where the rest is shown", async () => {
  serve([
    [/session/, { body: { clusters: [{ name: "east" }, { name: "west" }, { name: "north" }] } }],
    [/devices/, { body: { results: [device("west", []), device("east", [SLICE])], next: null } }],
    [/nodes/, { body: { results: [{ cluster: "west", name: "node-0", unschedulable: true }], next: null } }],
    [/drift/, { body: { results: [DRIFT], next: null } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="east,west">
      <Suspense>
        <GpusOfClusters filters={{ idle: true }} onFilter={() => undefined} />
      </Suspense>
    </ClusterProvider>,
  );
  const table = within(await screen.findByRole("table", { name: "Devices" }));
  const rows = await table.findAllByRole("link", { name: "#1" });
  const lines = rows.map((link) => within(link.closest("tr") as HTMLElement));
  expect(lines[0]?.getByText("east")).toBeTruthy();
  expect(lines[0]?.getByText("Shared")).toBeTruthy();
  expect(lines[0]?.getByText("team-a")).toBeTruthy();
  expect(lines[1]?.getByText("west")).toBeTruthy();
  expect(await lines[1]?.findByText("Cordoned")).toBeTruthy();
  expect(rows[1]?.getAttribute("href")).toContain("cluster=west");
  const drift = within((await screen.findByText("lives on")).closest("tr") as HTMLElement);
  expect(drift.getByText("west")).toBeTruthy();
  expect(screen.getByText("Fragmentation, charts and the view by node show one cluster:")).toBeTruthy();
  expect(screen.queryByRole("link", { name: "north" })).toBeNull();
});

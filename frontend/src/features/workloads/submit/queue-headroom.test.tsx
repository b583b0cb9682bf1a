import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { Headroom } from "@/api/types";
import { renderPart, serve } from "@/test-render";
import { boundOf, QueueHeadroom } from "./queue-headroom";

const GPUS: Headroom["resources"][number] = {
  resource: "nvidia.com/gpu",
  free: 2,
  quota_free: 6,
  user_free: 2,
  flavors: [
    { flavor: "a100", free: 4 },
    { flavor: "h100", free: 2 },
  ],
};

const panel = (
  <ClusterProvider cluster="default">
    <QueueHeadroom queue={{ namespace: "team-a", name: "main" }} />
  </ClusterProvider>
);

function serveHeadroom(headroom: Partial<Headroom>) {
  const all = { cluster_queue: "research", active: true, message: "", workloads: null, resources: [GPUS] };
  serve([[/local-queues\/team-a\/main\/headroom/, { body: { ...all, ...headroom } }]]);
}

it("shows each amount with the limit that bounds it", async () => {
  serveHeadroom({ workloads: 3 });
  await renderPart(panel);
  await screen.findByText("Your remaining quota here");
  expect(document.body.textContent).toContain("workloads 3by your limit");
  expect(document.body.textContent).toContain("nvidia.com/gpu 2by your limit");
});

it("says that a stopped queue starts no workload", async () => {
  serveHeadroom({ active: false, message: "ClusterQueue research is stopped" });
  await renderPart(panel);
  await screen.findByText("The queue starts no workload now: ClusterQueue research is stopped");
});

it("names the flavors where quota is free in several", () => {
  expect(boundOf({ ...GPUS, user_free: null, free: 6 })).toBe("a100 4, h100 2");
  expect(boundOf({ ...GPUS, user_free: 6, free: 6 })).toBe("a100 4, h100 2");
  expect(boundOf({ ...GPUS, user_free: null, flavors: GPUS.flavors.slice(0, 1) })).toBe("");
});

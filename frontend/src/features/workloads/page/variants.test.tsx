import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { WorkloadDetail } from "@/api/types";
import { renderPart } from "@/test-render";
import { Variants } from "./variants";

const SPOT = {
  name: "job-train-variant-spot-1a2b3",
  flavor: "spot",
  status: "Admitted",
  state: "Running",
  active: true,
  reason: "Admitted",
  message: "The workload is admitted",
  admitted_at: "2026-11-20T10:00:00Z",
  gate_opened_at: null,
} as const;

const RESERVATION = {
  ...SPOT,
  name: "job-train-variant-reservation-4c5d6",
  flavor: "reservation",
  status: "Pending",
  state: "Pending",
  reason: "WaitingForQuota",
  message: "cpu in flavor reservation: 1 core more needed",
  admitted_at: null,
} as const;

function workload(variants: WorkloadDetail["variants"]): WorkloadDetail {
  return { namespace: "research", name: "train", variants } as WorkloadDetail;
}

describe("the variants of a workload", () => {
  it("says in which flavor it runs, and why the others wait", async () => {
    await renderPart(<Variants workload={workload([RESERVATION, SPOT])} />);
    const link = await screen.findByRole("link", { name: "reservation" });
    expect(link.getAttribute("href")).toContain("/workloads/research/job-train-variant-reservation-4c5d6");
    expect(screen.getByText(RESERVATION.message)).toBeTruthy();
    expect(screen.getAllByRole("row")).toHaveLength(3);
  });

  it("shows nothing of a workload without variants", async () => {
    await renderPart(<Variants workload={workload([])} />);
    expect(screen.queryByRole("table")).toBeNull();
  });
});

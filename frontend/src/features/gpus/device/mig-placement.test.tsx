import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { LiveDevice, LiveSlice } from "@/api/types";
import { renderPart } from "@/test-render";
import { freePlaces, MigPlacement, migInstances, placeWords } from "./mig-placement";

const slice = (workload: string | null, profile: string, start: number, size: number) =>
  ({ workload, namespace: "ai", mig: [{ profile, start, size }] }) as LiveSlice;
const slices = [slice(null, "1g.5gb", 5, 1), slice("ai/train", "3g.20gb", 0, 4)];

test("instances are in the order of their places", () => {
  const placed = migInstances([...slices, { workload: "ai/shared" } as LiveSlice]);
  expect(placed.map(({ profile, start }) => [profile, start])).toEqual([
    ["3g.20gb", 0],
    ["1g.5gb", 5],
  ]);
  expect(placed.map(placeWords)).toEqual(["0 to 3", "5"]);
  expect(freePlaces(8, placed)).toEqual([4, 6, 7]);
});

test("the drawing says who holds which memory slices, and what is free", async () => {
  await renderPart(<MigPlacement device={{ mig_places: 8, slices } as LiveDevice} />);
  const words =
    "3g.20gb on memory slices 0 to 3: ai/train; 1g.5gb on memory slice 5: in use; 3 memory slices free";
  expect(screen.getByRole("img", { name: words })).toBeDefined();
  expect(screen.getByTitle("3g.20gb on memory slices 0 to 3: ai/train").textContent).toBe("3g.20gb");
  expect(screen.getByTitle("Memory slice 7: free")).toBeDefined();
});

test("a device in another mode has no such drawing", async () => {
  await renderPart(<MigPlacement device={{ slices: [] as LiveSlice[] } as LiveDevice} />);
  expect(screen.queryByRole("img")).toBeNull();
});

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import type { LiveDevice } from "@/api/types";
import { renderPart } from "@/test-render";
import { HeatMap, neighbour } from "./heat-map";

vi.mock("@/api/cluster", async (original) => ({
  ...(await original<object>()),
  useLive: (select: (live: unknown) => unknown) => select({ data: { devices: DEVICES } }),
}));

const device = (index: number, change: Partial<LiveDevice>) =>
  ({
    node: "n1",
    index,
    type: "V100",
    health: true,
    slots: 10,
    used_slots: 1,
    memory_mib: 1000,
    used_memory_mib: 250,
    cores_percent: 100,
    used_cores_percent: 25,
    ...change,
  }) as LiveDevice;
const DEVICES = { "GPU-b": device(1, { health: false }), "GPU-a": device(0, {}) };

it("a square says how much of its device is held, and opens it", async () => {
  await renderPart(<HeatMap />);
  const squares = await screen.findAllByRole("link", { name: /^GPU/ });
  expect(squares.map((square) => square.getAttribute("aria-label"))).toEqual([
    "GPU 0 of n1: 25 % held",
    "GPU 1 of n1: 25 % held",
  ]);
  expect(squares[0]?.getAttribute("href")).toBe("/gpus?node=n1&device=GPU-a");
  expect(squares[1]?.getAttribute("data-state")).toBe("unhealthy");
});

it("is one stop of Tab, and the arrow keys move between its squares", async () => {
  await renderPart(<HeatMap />);
  const [first, second] = await screen.findAllByRole("link", { name: /^GPU/ });
  expect([first?.tabIndex, second?.tabIndex]).toEqual([0, -1]);
  const user = userEvent.setup();
  first?.focus();
  await user.keyboard("{ArrowRight}");
  expect(document.activeElement).toBe(second);
  expect([first?.tabIndex, second?.tabIndex]).toEqual([-1, 0]);
  await user.keyboard("{ArrowRight}");
  expect(document.activeElement).toBe(second);
});

it("goes up and down between nodes, to the last device where there are fewer", () => {
  const rows = [["a", "b", "c"], ["d"], ["e", "f"]];
  const walked = (from: string, ...keys: string[]) => keys.map((key) => neighbour(rows, from, key));
  expect(walked("c", "ArrowDown", "ArrowUp", "ArrowRight", "Home", "End", "Enter")).toEqual([
    "d",
    undefined,
    "d",
    "a",
    "f",
    undefined,
  ]);
  expect(walked("f", "ArrowUp", "ArrowDown", "ArrowLeft")).toEqual(["d", undefined, "e"]);
});

import { expect, it } from "vitest";
import { FOREIGN_TENANT_COLOR, tenantColor } from "./tenant-color";

it("gives a tenant the same colour each time, and no two the same while there are colours", () => {
  const names = Array.from({ length: 36 }, (_, place) => `namespace-${place}`);
  const colors = names.map(tenantColor);
  expect(new Set(colors).size).toBe(36);
  expect(names.map(tenantColor)).toEqual(colors);
  expect(colors).toContain(tenantColor("one-more"));
});

it("gives no tenant the colour of a state", () => {
  const hues = Array.from({ length: 12 }, (_, place) =>
    Number(/ ([\d.]+)\)$/.exec(tenantColor(`hue-${place}`))?.[1]),
  );
  const distance = (a: number, b: number) => Math.min(Math.abs(a - b), 360 - Math.abs(a - b));
  for (const hue of hues) for (const state of [25, 80, 165]) expect(distance(hue, state)).toBeGreaterThan(25);
});

it("mutes whom we may not know", () => {
  expect(tenantColor(null)).toBe(FOREIGN_TENANT_COLOR);
});

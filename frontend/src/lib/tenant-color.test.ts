import { expect, it } from "vitest";
import { FOREIGN_TENANT_COLOR, tenantColor } from "./tenant-color";

it("gives a tenant the same colour each time, and no two the same while there are colours", () => {
  const names = Array.from({ length: 36 }, (_, place) => `namespace-${place}`);
  const colors = names.map(tenantColor);
  expect(new Set(colors).size).toBe(36);
  expect(names.map(tenantColor)).toEqual(colors);
  expect(colors).toContain(tenantColor("one-more"));
});

it("mutes whom we may not know", () => {
  expect(tenantColor(null)).toBe(FOREIGN_TENANT_COLOR);
});

import { describe, expect, it } from "vitest";
import vectors from "../../../tests/quantity_vectors.json";
import {
  formatAmountOf,
  formatAmountShort,
  formatBytes,
  formatMib,
  formatMibOf,
  formatShare,
  InvalidQuantity,
  parseAmount,
} from "./quantity";

describe("the vectors shared with quantity.py", () => {
  it.each(vectors.parse)("$resource: $text is $amount", ({ resource, text, amount }) => {
    expect(parseAmount(resource, text)).toBe(amount);
  });

  it.each(vectors.invalid)("%j is refused", (text) => {
    expect(() => parseAmount("cpu", text)).toThrow(InvalidQuantity);
  });
});

describe("amounts for people", () => {
  it("counts device memory in MiB, as HAMi does", () => {
    expect(formatMib(24_576)).toBe("24 GiB");
    expect(formatMib(500)).toBe("500 MiB");
    expect(formatAmountShort("nvidia.com/gpumem", 32_768)).toBe("32 GiB");
  });

  it("shows cpu in cores and gpu cores in percent of one device", () => {
    expect(formatAmountShort("cpu", 1500)).toBe("1.5");
    expect(formatAmountShort("nvidia.com/gpucores", 300)).toBe("300 %");
  });

  it("says the unit once where both amounts have it", () => {
    expect(formatAmountOf("memory", 317 * 2 ** 30, 768 * 2 ** 30)).toBe("317 / 768 GiB");
    expect(formatAmountOf("memory", 317 * 2 ** 20, 2 ** 30)).toBe("317 MiB / 1 GiB");
    expect(formatAmountOf("nvidia.com/gpu", 3, 8)).toBe("3 / 8");
    expect(formatMibOf(0, 32_768)).toBe("0 / 32 GiB");
  });

  it("names what has no limit", () => {
    expect(formatAmountShort("cpu", 2 ** 63)).toBe("no limit");
  });

  it("says bytes in the largest unit that fits", () => {
    expect(formatBytes(0)).toBe("0 B");
    expect(formatBytes(1536 * 2 ** 20)).toBe("1.5 GiB");
  });

  it("does not call a share of nothing 0 %", () => {
    expect(formatShare(0, 0)).toBe("–");
    expect(formatShare(1, 3)).toBe("33.3 %");
  });
});

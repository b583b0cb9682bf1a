import { expect, test } from "vitest";
import { deviceModel } from "./device-words";

test("a model is named without the vendor that HAMi puts before it", () => {
  expect(deviceModel("NVIDIA-NVIDIA A100-SXM4-80GB")).toBe("NVIDIA A100-SXM4-80GB");
  expect(deviceModel("NVIDIA-Tesla V100")).toBe("Tesla V100");
  expect(deviceModel("Ascend910B3")).toBe("Ascend910B3");
});

import { expect, it } from "vitest";
import { nearestWords, refusalWords } from "./refusal-words";

it("says what HAMi's and Kubernetes' words mean", () => {
  expect(refusalWords("CardNotHealth")).toBe("device unhealthy");
  expect(refusalWords("Insufficient cpu")).toBe("too little cpu free");
  expect(refusalWords("SomethingNew")).toBe("SomethingNew");
});

it("counts what the nearest node lacks", () => {
  expect(nearestWords("5/8 CardInsufficientMemory, 1/8 CardNotHealth")).toBe(
    "5 of 8: too little device memory free; 1 of 8: device unhealthy",
  );
  expect(nearestWords("Insufficient memory")).toBe("too little memory free");
});

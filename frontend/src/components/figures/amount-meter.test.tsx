import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderPart } from "@/test-render";
import { AmountMeter } from "./amount-meter";

it.each([
  [256, "var(--kw-used)"],
  [257, "var(--kw-over)"],
])("%i of 256 is drawn in %s", async (used, color) => {
  await renderPart(<AmountMeter resource="pods" used={used} total={256} />);
  const [bar] = screen.getByRole("img").querySelectorAll<HTMLElement>("[title]");
  expect(bar?.style.getPropertyValue("--segment")).toBe(color);
});

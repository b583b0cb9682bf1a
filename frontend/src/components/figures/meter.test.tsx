import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderPart } from "@/test-render";
import { Meter } from "./meter";

function widths(): string[] {
  return [...screen.getByRole("img").querySelectorAll<HTMLElement>("[title]")].map(
    (each) => each.style.width,
  );
}

it("draws each segment to scale and leaves out empty ones", async () => {
  const segment = (value: number) => ({ value, color: "red", label: `${value}` });
  await renderPart(<Meter label="use" total={100} segments={[segment(25), segment(0), segment(50)]} />);
  expect(widths()).toEqual(["25%", "50%"]);
});

it("shows more than the total as it is, within the bar", async () => {
  const segments = [
    { value: 150, color: "red", label: "a" },
    { value: 50, color: "blue", label: "b" },
  ];
  await renderPart(<Meter label="use" total={100} segments={segments} />);
  expect(widths()).toEqual(["75%", "25%"]);
});

it("draws an empty bar for a total of nothing", async () => {
  await renderPart(<Meter label="no devices" total={0} segments={[]} />);
  expect(screen.getByRole("img", { name: "no devices" })).toBeDefined();
});

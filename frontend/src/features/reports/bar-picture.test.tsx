import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { renderPart } from "@/test-render";
import { BarPicture } from "./bar-picture";

const BARS = [
  { label: "east · training-of-large-language-models-in-research", value: 4 },
  { label: "west", value: 1 },
];

async function drawn(isNarrow: boolean): Promise<{ picture: SVGSVGElement; bars: SVGRectElement[] }> {
  vi.stubGlobal("matchMedia", () => ({
    matches: isNarrow,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }));
  await renderPart(<BarPicture title="Waits" bars={BARS} format={String} />);
  const picture = (await screen.findByRole("img")) as unknown as SVGSVGElement;
  return { picture, bars: [...picture.querySelectorAll("rect")] };
}

it("puts labels above the bars where there is no room beside them", async () => {
  const { picture, bars } = await drawn(true);
  expect(picture.getAttribute("viewBox")).toMatch(/^0 0 360 /);
  expect(picture.style.minWidth).toBe("");
  expect(bars.map((bar) => bar.getAttribute("x"))).toEqual(["0", "0"]);
});

it("puts labels beside the bars elsewhere", async () => {
  const { picture, bars } = await drawn(false);
  expect(picture.getAttribute("viewBox")).toMatch(/^0 0 900 /);
  expect(bars.map((bar) => bar.getAttribute("x"))).toEqual(["300", "300"]);
});

import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderPart } from "@/test-render";
import { MiddleEllipsis } from "./middle-ellipsis";

it("keeps the end apart and the whole text readable", async () => {
  await renderPart(<MiddleEllipsis text="llm-pretraining-66e99684-gfnsq" />);
  const whole = await screen.findByTitle("llm-pretraining-66e99684-gfnsq");
  expect(whole.textContent).toBe("llm-pretraining-66e99684-gfnsq");
  expect((whole.lastChild as HTMLElement).dataset.text).toBe("84-gfnsq");
});

it("cuts a short text nowhere in its middle", async () => {
  await renderPart(<MiddleEllipsis text="a100-80gb" />);
  const whole = await screen.findByTitle("a100-80gb");
  expect((whole.lastChild as HTMLElement).dataset.text).toBe("a100-80gb");
});

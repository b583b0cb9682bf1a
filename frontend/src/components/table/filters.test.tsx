import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { renderPart } from "@/test-render";
import { FilterRow } from "./filters";

const wide = window.matchMedia;

beforeEach(() => {
  const onPhone = (query: string) => ({ ...wide(query), matches: query.includes("max-width") });
  vi.stubGlobal("matchMedia", onPhone);
});

afterEach(() => {
  vi.unstubAllGlobals();
});

it("keeps all filters but the first behind one button on a phone", async () => {
  await renderPart(
    <FilterRow aside={<button type="button">Columns</button>}>
      <input aria-label="Search" />
      <input aria-label="Namespace" />
    </FilterRow>,
  );
  const button = await screen.findByRole("button", { name: "Filters" });
  expect(screen.getByLabelText("Search")).toBeTruthy();
  expect(screen.queryByLabelText("Namespace")).toBeNull();
  expect(screen.queryByRole("button", { name: "Columns" })).toBeNull();
  await userEvent.click(button);
  expect(screen.getByLabelText("Namespace")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Columns" })).toBeTruthy();
});

import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { renderPart } from "@/test-render";
import { QueryError } from "./query-error";

const failed = (status: number) => Object.assign(new Error("You may not see it."), { status });

it("offers to try again what may go well the next time", async () => {
  const refetch = vi.fn();
  await renderPart(<QueryError title="No nodes" query={{ error: failed(503), refetch }} />);
  screen.getByRole("button", { name: "Try again" }).click();
  expect(refetch).toHaveBeenCalledOnce();
});

it.each([403, 404])("offers no second try of a %d", async (status) => {
  await renderPart(<QueryError title="No nodes" query={{ error: failed(status), refetch: vi.fn() }} />);
  expect(screen.getByRole("alert").textContent).toContain("You may not see it.");
  expect(screen.queryByRole("button")).toBeNull();
});

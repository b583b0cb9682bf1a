import { useInfiniteQuery } from "@tanstack/react-query";
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { renderPart } from "@/test-render";
import { textColumn } from "./columns";
import { PagedTable, renewTop } from "./paged-table";

const COLUMNS = [
  textColumn<{ name: string }>(
    "name",
    () => "Name",
    (row) => row.name,
  ),
];

function Names({
  read,
}: {
  read: (after: number) => Promise<{ results: { name: string }[]; next: number | null }>;
}) {
  const list = useInfiniteQuery({
    queryKey: ["names"],
    queryFn: ({ pageParam }) => read(pageParam),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next,
    retry: false,
  });
  return (
    <PagedTable label="Names" list={list} columns={COLUMNS} rowKey={(row) => row.name} empty="no names" />
  );
}

beforeEach(() => {
  // jsdom lays nothing out; a frame of 400 px shows some ten rows.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
});

it("reads page after page while the reader is near the end", async () => {
  const pages = [
    { results: [{ name: "ada" }], next: 1 },
    { results: [{ name: "grace" }], next: null },
  ];
  await renderPart(<Names read={async (after) => pages[after] ?? { results: [], next: null }} />);
  expect(await screen.findByTitle("ada")).toBeTruthy();
  expect(await screen.findByTitle("grace")).toBeTruthy();
});

it("says why it cannot be shown, and reads again when asked", async () => {
  let fails = true;
  const read = async () => {
    if (fails) throw new Error("no answer");
    return { results: [{ name: "ada" }], next: null };
  };
  await renderPart(<Names read={read} />);
  expect(await screen.findByText("no answer")).toBeTruthy();
  fails = false;
  await userEvent.click(screen.getByRole("button", { name: /again/i }));
  expect(await screen.findByTitle("ada")).toBeTruthy();
});

it("renews the top, and nothing under who has scrolled on", () => {
  expect(renewTop(500)({ state: { data: { pages: [1] } } })).toBe(500);
  expect(renewTop(500)({ state: { data: { pages: [1, 2] } } })).toBe(false);
});

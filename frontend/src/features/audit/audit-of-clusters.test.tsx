import { screen, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { AuditPage } from "./audit-page";

const record = (
  id: number,
  cluster: string,
  verb: string,
  name: string,
  after: Record<string, unknown> | null = null,
) => ({
  id,
  cluster,
  at: "2026-01-01T00:00:00Z",
  username: "alice",
  verb,
  kind: "ClusterQueue",
  namespace: "",
  name,
  before: null,
  after,
  message: "",
  address: "10.0.0.1",
});

beforeEach(() => {
  // jsdom lays nothing out; a frame of 400 px shows some ten rows.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
});

it("says in which cluster something was done, and exports all of them", async () => {
  const results = [record(2, "west", "create", "main"), record(1, "", "login", "alice")];
  serve([[/audit/, { body: { results, next: null } }]]);
  await renderPart(
    <ClusterProvider cluster="east,west">
      <AuditPage filters={{}} onFilter={() => undefined} />
    </ClusterProvider>,
  );
  const west = within((await screen.findByText("ClusterQueue/main")).closest("tr") as HTMLElement);
  expect(west.getByText("west")).toBeTruthy();
  const login = within(screen.getByText("ClusterQueue/alice").closest("tr") as HTMLElement);
  expect(login.getByText("–")).toBeTruthy();
  const csv = screen.getByRole("link", { name: "Export CSV" });
  expect(csv.getAttribute("href")).toContain("cluster=east%2Cwest");
});

it("names the first of many objects that one request created", async () => {
  const names = Array.from({ length: 1000 }, (_, number) => `w-${number}`);
  serve([
    [/audit/, { body: { results: [record(1, "east", "create", "", { count: 1000, names })], next: null } }],
  ]);
  await renderPart(
    <ClusterProvider cluster="east">
      <AuditPage filters={{}} onFilter={() => undefined} />
    </ClusterProvider>,
  );
  expect(await screen.findByText("w-0, w-1, w-2 … (1000)")).toBeTruthy();
});

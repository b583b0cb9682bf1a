import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { PodSet } from "@/api/types";
import { renderPart } from "@/test-render";
import { PodSets } from "./pod-sets";

const podSet = (flavors: Record<string, string>) =>
  ({
    name: "main",
    count: 2,
    min_count: null,
    admitted_count: 2,
    node_selector: {},
    requests: { cpu: "2", memory: "4Gi" },
    resource_usage: { cpu: "4", memory: "8Gi" },
    flavors,
  }) as unknown as PodSet;

it("says a flavor of all resources once, as a link", async () => {
  await renderPart(<PodSets podSets={[podSet({ cpu: "v100", memory: "v100" })]} />);
  const links = await screen.findAllByRole("link", { name: "v100" });
  expect(links.map((link) => link.getAttribute("href"))).toEqual(["/flavors/v100"]);
  expect(screen.queryByRole("columnheader", { name: "Assigned flavor" })).toBeNull();
});

it("says the flavor of each resource where they differ", async () => {
  await renderPart(<PodSets podSets={[podSet({ cpu: "any", memory: "v100" })]} />);
  expect(await screen.findByRole("columnheader", { name: "Assigned flavor" })).toBeTruthy();
  expect(screen.getByRole("cell", { name: "any" })).toBeTruthy();
});

it("says the one flavor once although a resource counts in none, which holds no quota", async () => {
  const counted = { ...podSet({ memory: "v100" }), resource_usage: { memory: "8Gi" } } as PodSet;
  await renderPart(<PodSets podSets={[counted]} />);
  expect(await screen.findByRole("link", { name: "v100" })).toBeTruthy();
  expect(screen.queryByRole("columnheader", { name: "Assigned flavor" })).toBeNull();
  expect(within(screen.getByRole("row", { name: /cpu/ })).getByRole("cell", { name: "–" })).toBeTruthy();
});

import { expect, it } from "vitest";
import { read } from "@/lib/manifest/object";
import { changeWords, unitWords } from "./change-words";
import { newManifest } from "./new-manifests";
import {
  addFlavor,
  addGroup,
  addResource,
  groupCount,
  quotaRows,
  removeFlavor,
  removeResource,
} from "./quota-groups";

const begun = addGroup(newManifest("ClusterQueue", { name: "research" }), "a100", "cpu");

const cells = (manifest: typeof begun) =>
  quotaRows(manifest, 0).map(({ flavor, resource }) => `${flavor.name} ${resource.name}`);

it("adds resources to every flavor, and flavors with every resource", () => {
  const grown = addFlavor(addResource(begun, 0, "memory"), 0, "v100");
  expect(cells(grown)).toEqual(["a100 cpu", "a100 memory", "v100 cpu", "v100 memory"]);
  expect(read(grown, ["spec", "resourceGroups", 0, "coveredResources"])).toEqual(["cpu", "memory"]);
  expect(cells(removeFlavor(grown, 0, 0))).toEqual(["v100 cpu", "v100 memory"]);
  expect(cells(removeResource(grown, 0, "cpu"))).toEqual(["a100 memory", "v100 memory"]);
});

it("takes a group away with its last flavor or its last resource", () => {
  expect(groupCount(removeFlavor(begun, 0, 0))).toBe(0);
  expect(groupCount(removeResource(begun, 0, "cpu"))).toBe(0);
});

it("shows amounts with their units, where the quantity has none", () => {
  expect(unitWords("nvidia.com/total-gpumem", "524288")).toBe("512 GiB");
  expect(unitWords("nvidia.com/total-gpucores", "1600")).toBe("1,600 %");
  expect(unitWords("cpu", "8")).toBe("");
  expect(unitWords("cpu", "many")).toBe("");
});

it("names a quota by its resource and flavor in the list of changes", () => {
  const path = [
    "spec",
    "resourceGroups",
    0,
    "flavors",
    "a100",
    "resources",
    "nvidia.com/total-gpumem",
    "nominalQuota",
  ];
  const words = changeWords({ path, before: "1024", after: undefined }, begun);
  expect(words).toMatchObject({
    label: "Nominal quota of nvidia.com/total-gpumem, flavor a100",
    before: "1024 (1 GiB)",
    after: "none",
  });
});

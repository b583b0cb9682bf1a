import { expect, it } from "vitest";
import type { ClusterQueue, LiveQuota } from "@/api/types";
import { describeQuota, following, formatWeightedShare, quotaSegments, sortQuotas } from "./quota";

function quota(change: Partial<LiveQuota>): LiveQuota {
  return {
    flavor: "v100",
    resource: "nvidia.com/gpu",
    nominal: 16,
    deserved: null,
    borrowing_limit: null,
    lending_limit: null,
    used: 0,
    borrowed: 0,
    ...change,
  };
}

it("parts what is its own from what is borrowed", () => {
  expect(quotaSegments(quota({ used: 20, borrowed: 4 }))).toEqual({
    own: 16,
    borrowed: 4,
    lendable: 0,
    scale: 20,
  });
});

it("lends what is idle, up to the lending limit", () => {
  expect(quotaSegments(quota({ used: 4 })).lendable).toBe(12);
  expect(quotaSegments(quota({ used: 4, lending_limit: 8 })).lendable).toBe(8);
  expect(quotaSegments(quota({ used: 12, lending_limit: 8 })).lendable).toBe(4);
});

it("draws the bar up to the borrowing limit, and further when more is used", () => {
  expect(quotaSegments(quota({ borrowing_limit: 8 })).scale).toBe(24);
  expect(quotaSegments(quota({ borrowing_limit: 8, used: 30, borrowed: 14 })).scale).toBe(30);
});

it("measures by what a sharing policy gives", () => {
  const shared = quota({ nominal: 0, deserved: 6, used: 4 });
  expect(quotaSegments(shared)).toEqual({ own: 4, borrowed: 0, lendable: 2, scale: 6 });
  expect(describeQuota(shared)).toContain("deserves 6, of which 4 used (nominal: 0)");
});

it("says the limits in words", () => {
  const text = describeQuota(quota({ used: 20, borrowed: 4, lending_limit: 0 }));
  expect(text).toContain("borrowed 4 (borrowing limit: no limit)");
  expect(text).toContain("lending limit: 0");
});

it("puts accelerators first and flavors side by side", () => {
  const resources = [
    ["memory", "a100"],
    ["cpu", "a100"],
    ["nvidia.com/gpumem", "a100"],
    ["nvidia.com/gpu", "v100"],
    ["nvidia.com/gpu", "a100"],
  ].map(([resource = "", flavor = ""]) => ({ resource, flavor }));
  expect(
    sortQuotas(resources.map((each) => ({ ...each, used: 0 }))).map(
      ({ resource, flavor }) => `${resource} ${flavor}`,
    ),
  ).toEqual([
    "nvidia.com/gpu a100",
    "nvidia.com/gpu v100",
    "nvidia.com/gpumem a100",
    "cpu a100",
    "memory a100",
  ]);
});

it("shows the scarcest first: that is what workloads wait for", () => {
  const quotas = [
    quota({ used: 9, nominal: 80 }),
    quota({ resource: "cpu", used: 97, nominal: 100 }),
    quota({ resource: "memory", used: 148, nominal: 100 }),
  ];
  expect(sortQuotas(quotas).map(({ resource }) => resource)).toEqual(["memory", "cpu", "nvidia.com/gpu"]);
});

it("knows a share above all numbers", () => {
  expect(formatWeightedShare("Infinity")).toBe("∞");
  expect(formatWeightedShare(12.345)).toBe("12.3");
});

it("says how a quota follows the nodes", () => {
  const cell = (headroom: string) => ({ flavor: "v100", resource: "nvidia.com/gpu", share: "50%", headroom });
  const words = (headroom: string, flavor = "v100") =>
    following({ node_quotas: [cell(headroom)] } as ClusterQueue, flavor, "nvidia.com/gpu");
  expect(words("0")).toBe("50% of the nodes");
  expect(words("2")).toBe("50% of the nodes, less 2");
  expect(words("2", "a100")).toBeNull();
});

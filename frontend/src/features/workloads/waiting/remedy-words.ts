/** The remedy for a waiting workload, by the rule that decides; the server says it in English. */
import { t } from "@lingui/core/macro";
import type { Explanation } from "@/api/types";

const words = (): Partial<Record<Explanation["rule"], string>> => ({
  NamespaceQuota: t`It starts when pods of its namespace end, its ResourceQuota is raised, or you reduce its request.`,
  Nodes: t`It starts when nodes have room for its pods, or if you reduce its request.`,
  Devices: t`It starts when enough devices become free, or if you reduce its request.`,
  Topology: t`It starts when enough room becomes free within the requested topology.`,
  Quota: t`It starts when the missing quota becomes free.`,
  MaximumQuota: t`Request less, or have the quota or the borrowing limit raised.`,
  CoveredResources: t`Add these resources to the ClusterQueue, or do not request them.`,
  FlavorMatch: t`Change its node selector, affinity or tolerations so that a flavor of the ClusterQueue matches.`,
  TopologyFlavor: t`Give each pod set that needs a topology exactly one flavor with a topology.`,
  UserLimit: t`It starts when other workloads of its user end, or the limit is raised.`,
  PlannedStart: t`It starts after the planned one, when other workloads end early, or with a time limit that ends before the planned start.`,
  QueueOrder: t`It starts when the workloads ahead of it are admitted.`,
});

/** Empty where there is no remedy. */
export function remedyWords({ rule, state, remedy }: Pick<Explanation, "rule" | "state" | "remedy">): string {
  if (remedy === "") return "";
  if (state === "CannotStart" && (rule === "Devices" || rule === "Nodes"))
    return t`Request less per pod, use fewer pods, or submit to a queue with larger nodes.`;
  if (state === "CannotStart" && rule === "UserLimit")
    return t`Request less, or have the limit of its user raised.`;
  return words()[rule] ?? remedy;
}

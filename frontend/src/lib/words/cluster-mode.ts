/** Modes of a cluster: labels, colours and meaning, defined here and nowhere else. */
import { t } from "@lingui/core/macro";
import type { StatusLook } from "./workload-state";

export type ClusterMode = "observe" | "shadow" | "schedule";

export const clusterModes = (): Record<ClusterMode, StatusLook> => ({
  observe: {
    label: t`Observe`,
    color: "yellow",
    meaning: t`Another scheduler decides here. Everything is shown; nothing is written to the cluster.`,
  },
  shadow: {
    label: t`Shadow`,
    color: "grape",
    meaning: t`Another scheduler decides here. kueueweb's scheduler decides the same workloads for comparison; nothing is written to the cluster.`,
  },
  schedule: { label: t`Schedule`, color: "blue", meaning: t`kueueweb decides in this cluster.` },
});

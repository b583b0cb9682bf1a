/** The manifest with which the editor of a new object begins. */
import type { ObjectKind } from "@/api/manifests";
import { writtenMoment } from "@/lib/manifest/moment";
import type { Fields, Manifest } from "@/lib/manifest/object";

const SPECS: Record<Exclude<ObjectKind, "Configuration" | "ConfigMap" | "Reservation">, Fields> = {
  ClusterQueue: {
    queueingStrategy: "BestEffortFIFO",
    namespaceSelector: {},
    stopPolicy: "None",
    resourceGroups: [],
  },
  Cohort: {},
  LocalQueue: { clusterQueue: "", stopPolicy: "None" },
  ResourceFlavor: { nodeLabels: {} },
};

/** HAMi's defaults, to be changed. */
const DEVICE_SETTINGS = [
  "nvidia:",
  "  deviceSplitCount: 10",
  "  deviceMemoryScaling: 1",
  "  deviceCoreScaling: 1",
  "nodeSchedulerPolicy: binpack",
  "gpuSchedulerPolicy: spread",
  "",
].join("\n");

/** The window of a new reservation: tomorrow from eight to noon, in the reader's zone. */
function tomorrow(now: Date): Fields {
  const at = (hour: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1, hour);
  return { start: writtenMoment(at(8)), end: writtenMoment(at(12)), ifBusy: "Wait" };
}

export interface Beginning {
  name?: string;
  /** The ClusterQueue of a LocalQueue. */
  clusterQueue?: string;
}

export function newManifest(kind: ObjectKind, { name = "", clusterQueue }: Beginning = {}): Manifest {
  if (kind === "Configuration") {
    return { apiVersion: "config.kueue.x-k8s.io/v1beta2", kind, metadata: { name: "default" } };
  }
  if (kind === "ConfigMap") {
    const metadata = { name: "hami-scheduler-device", namespace: "kube-system" };
    return { apiVersion: "v1", kind, metadata, data: { "device-config.yaml": DEVICE_SETTINGS } };
  }
  if (kind === "Reservation") {
    return { apiVersion: "kueueweb.io/v1", kind, metadata: { name }, spec: tomorrow(new Date()) };
  }
  return {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind,
    metadata: kind === "LocalQueue" ? { name, namespace: "" } : { name },
    spec: { ...SPECS[kind], ...(clusterQueue === undefined ? {} : { clusterQueue }) },
  };
}

/** What the editor begins with for an object that is to be new. */
import type { ObjectKind } from "@/api/manifests";
import type { Fields, Manifest } from "@/lib/manifest/object";

const SPECS: Record<ObjectKind, Fields> = {
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

export interface Beginning {
  name?: string;
  /** Of a LocalQueue: where it leads. */
  clusterQueue?: string;
}

export function newManifest(kind: ObjectKind, { name = "", clusterQueue }: Beginning = {}): Manifest {
  return {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind,
    metadata: kind === "LocalQueue" ? { name, namespace: "" } : { name },
    spec: { ...SPECS[kind], ...(clusterQueue === undefined ? {} : { clusterQueue }) },
  };
}
